"""tf.io: files as bytes, and images. Texts and bytes stay Python's."""
import tidemark as td

from .errors import InvalidArgumentError, NotFoundError
from .tensor import wrap


def read_file(filename, name=None):
    """The bytes of a file."""
    try:
        with open(filename, "rb") as file:
            return file.read()
    except FileNotFoundError as error:
        raise NotFoundError(f"{filename}; No such file or directory") from error


def write_file(filename, contents, name=None):
    with open(filename, "wb") as file:
        file.write(contents.encode() if isinstance(contents, str) else contents)


def _decoded(decode, contents, channels, dtype):
    if dtype is not None and getattr(dtype, "name", dtype) != "uint8":
        raise InvalidArgumentError("images are uint8 here: tf.cast(image, tf.float32) / 255")
    try:
        return wrap(decode(contents, channels=0 if channels is None else channels))
    except td.UserError as error:
        raise InvalidArgumentError(str(error)) from error


def decode_png(contents, channels=0, dtype=None, name=None):
    return _decoded(td.data.decode_png, contents, channels, dtype)


def decode_jpeg(contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, acceptable_fraction=1, dct_method="", name=None):
    return _decoded(td.data.decode_jpeg, contents, channels, None)


def decode_image(contents, channels=None, dtype=None, name=None, expand_animations=True):
    return _decoded(td.data.decode_image, contents, channels, dtype)
