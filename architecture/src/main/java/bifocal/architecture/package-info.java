/** The borders between modules, as tests, and the proof that each of these tests can fail. */
@NullMarked
package bifocal.architecture;

import org.jspecify.annotations.NullMarked;
