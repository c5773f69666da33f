/** {@code FLASH_ATTN} against the reference, on stand-ins and on a GPU. */
@org.jspecify.annotations.NullMarked
package bifocal.cuda.flashattention;
