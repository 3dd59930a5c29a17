"""Names of TensorFlow's that are not here: what is nearest, or what to write."""
import difflib

from . import dtypes

# Ops that Tidemark does not have yet, by the name's last part.
NO_OP = {
    "eig", "eigvals", "logm", "sqrtm", "tridiagonal_solve", "igamma", "igammac", "lbeta",
    "betainc", "zeta", "erfcinv", "ndtri", "bessel_i0", "bessel_i1", "gamma", "poisson", "stateless_gamma", "stateless_poisson",
    "stateless_binomial", "fixed_unigram_candidate_sampler", "ctc_loss", "ctc_greedy_decoder", "ctc_beam_search_decoder", "erosion2d", "dilation2d",
    "max_pool_with_argmax", "fractional_max_pool", "fractional_avg_pool", "local_response_normalization", "lrn",
    "stft", "inverse_stft", "dct", "idct", "mdct", "inverse_mdct", "frame", "overlap_and_add", "linear_to_mel_weight_matrix",
    "mfccs_from_log_mel_spectrograms", "quantize", "dequantize",
}
REFUSED = {
    "saved_model": "save the Variables instead: tf.train.Checkpoint(model=model).write(path) writes safetensors, and model.save_weights(path) too",
    "load_model": "make the model again by its code, and read its weights: model.load_weights(path)",
    "TensorBoard": "write losses with CSVLogger; td.report writes pages of memory",
    "TFRecordWriter": "write arrays with td.io.save_npz or save_safetensors",
    "strings": "texts stay Python's str; tensors hold numbers",
    "sparse": "sparse tensors are not here: tf.gather, tf.IndexedSlices and tf.math.segment_sum compute on rows",
    "ragged": "ragged tensors are not here: tf.data.Dataset.padded_batch and tf.sequence_mask pad rows",
    "RaggedTensor": "ragged tensors are not here: tf.data.Dataset.padded_batch and tf.sequence_mask pad rows",
    "SparseTensor": "sparse tensors are not here: tf.gather and tf.math.segment_sum compute on rows",
    "distribute": "Tidemark computes in one process, on all its threads",
    "lite": "Tidemark runs its own programs; td.function(f).plan(...) says what they need",
    "compat": "TensorFlow 1 is not here: its names of version 2 are",
    "summary": "tf.summary is not here: td.report writes pages of memory, and Keras's CSVLogger writes losses",
    "py_function": "a function of Python's cannot run inside a program: call it in eager code, or in Dataset.map",
    "numpy_function": "a function of Python's cannot run inside a program: call it in eager code, or in Dataset.map",
}


def explain(module, name, known):
    """The text of the AttributeError for a name."""
    title = f"tidemark.tensorflow has no {module + '.' if module else ''}{name}"
    if name in dtypes.UNKNOWN and not module:
        return f"{title}: {dtypes.why_not(name)}"
    if name in REFUSED:
        return f"{title}: {REFUSED[name]}"
    if name in NO_OP:
        return f"{title}: Tidemark has no op for it yet"
    near = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], 1, 0.6)
    return f"{title}" + (f"; the nearest name is {module + '.' if module else ''}{near[0]}" if near else "")


def getattr_of(module, namespace):
    """A module's __getattr__."""

    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(explain(module, name, namespace))

    return __getattr__


def dir_of(namespace):
    """A module's __dir__: TensorFlow's names, without what the module is made of."""

    def __dir__():
        made_of = ("tidemark.tensorflow.tensor", "tidemark.tensorflow.missing")
        return [name for name, value in namespace.items() if not name.startswith("_") and name not in ("td", "np") and getattr(value, "__module__", "") not in made_of]

    return __dir__
