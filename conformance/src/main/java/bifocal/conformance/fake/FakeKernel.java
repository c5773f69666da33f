package bifocal.conformance.fake;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.TensorView;
import bifocal.reference.HostTensor;
import bifocal.reference.KeyValues;
import bifocal.reference.ReferenceAttention;
import bifocal.reference.ReferenceRow;

/** What a fake backend's forward does. */
@FunctionalInterface
public interface FakeKernel {
  /** Does nothing. */
  FakeKernel NOTHING = (layer, parameters, q, cache, batch, output) -> {};

  /** Computes correctly, in host memory. */
  FakeKernel REFERENCE =
      (layer, parameters, q, cache, batch, output) -> {
        HostTensor out = HostTensor.over(output.out());
        ReferenceAttention attention = ReferenceAttention.of(layer, parameters);
        for (ReferenceRow row : attention.all(q, KeyValues.cached(cache, batch), batch)) {
          for (int d = 0; d < row.out().length; d++) {
            out.put((float) row.out()[d], row.at().queryToken(), row.at().head(), d);
          }
          output
              .lse()
              .map(HostTensor::over)
              .forEach(lse -> lse.put((float) row.lse(), row.at().queryToken(), row.at().head()));
        }
      };

  /** Writes the rows of a batch's live requests. */
  void forward(
      AttentionLayerSpec.Dense layer,
      LayerParameters parameters,
      TensorView q,
      KvCacheView cache,
      CommonAttentionMetadata batch,
      AttentionOutput output);

  /** Fills the output of every live request with one number, so that a test sees who ran it. */
  static FakeKernel marking(float mark) {
    return (layer, parameters, q, cache, batch, output) -> {
      HostTensor out = HostTensor.over(output.out());
      for (int request = 0; request < batch.live(); request++) {
        for (int i = 0; i < batch.queryLen(request); i++) {
          for (int head = 0; head < layer.numHeads(); head++) {
            for (int d = 0; d < layer.headSizeV(); d++) {
              out.put(mark, batch.queryStart(request) + i, head, d);
            }
          }
        }
      }
    };
  }
}
