package bifocal.cuda.driver;

import java.nio.charset.StandardCharsets;

/** A small kernel as PTX, which the driver compiles for whatever device it runs on. */
final class RampKernel {
  /** Writes {@code start + i} to the {@code i}th float, for {@code count} floats. */
  static final String SYMBOL = "bifocal_ramp";

  static final byte[] PTX =
      """
      .version 7.0
      .target sm_80
      .address_size 64

      .visible .entry bifocal_ramp(
        .param .u64 out,
        .param .u32 count,
        .param .f32 start,
        .param .u64 spare
      )
      {
        .reg .pred %p<2>;
        .reg .b32 %r<6>;
        .reg .b64 %rd<5>;
        .reg .f32 %f<4>;

        ld.param.u64 %rd1, [out];
        ld.param.u32 %r1, [count];
        ld.param.f32 %f1, [start];
        mov.u32 %r2, %ctaid.x;
        mov.u32 %r3, %ntid.x;
        mov.u32 %r4, %tid.x;
        mad.lo.u32 %r5, %r2, %r3, %r4;
        setp.ge.u32 %p1, %r5, %r1;
        @%p1 bra DONE;
        cvt.rn.f32.u32 %f2, %r5;
        add.f32 %f3, %f1, %f2;
        cvta.to.global.u64 %rd2, %rd1;
        mul.wide.u32 %rd3, %r5, 4;
        add.s64 %rd4, %rd2, %rd3;
        st.global.f32 [%rd4], %f3;
      DONE:
        ret;
      }
      """
          .getBytes(StandardCharsets.US_ASCII);

  private RampKernel() {}
}
