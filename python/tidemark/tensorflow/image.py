"""tf.image: sizes, patches and mirrors of images, [batch, height, width, channels] or [height, width, channels]."""
import tidemark as td

from .nn import _each
from .tensor import convert, integers, op, raw, wrap


class ResizeMethod:
    BILINEAR, NEAREST_NEIGHBOR, BICUBIC = "bilinear", "nearest", "bicubic"


def _batched(image, function):
    """One image alone is a batch of one."""
    return td.squeeze(function(td.expand_dims(image, 0)), 0) if image.ndim == 3 else function(image)


def _sizes(image, size, preserve_aspect_ratio):
    height, width = integers(size, "resize: size")
    if preserve_aspect_ratio:
        old = image.shape[-3], image.shape[-2]
        scale = min(height / old[0], width / old[1])
        height, width = round(old[0] * scale), round(old[1] * scale)
    return height, width


@op
def resize(images, size, method=ResizeMethod.BILINEAR, preserve_aspect_ratio=False, antialias=False):
    x, word = raw(images), str(method).lower()
    if word not in ("bilinear", "nearest", "bicubic"):
        raise NotImplementedError(f"tf.image.resize: method={method!r}; Tidemark has \"nearest\", \"bilinear\" and \"bicubic\"")
    sizes = _sizes(x, size, preserve_aspect_ratio)
    if word != "nearest":
        x = td.cast(x, td.f32)
    return wrap(_batched(x, lambda image: td.resize(image, sizes, method=word, antialias=antialias)))


@op
def extract_patches(images, sizes, strides, rates, padding):
    return wrap(td.extract_patches(raw(images), _each(sizes, "sizes", 2), strides=_each(strides, "strides", 2), dilations=_each(rates, "rates", 2),
                                   padding=padding.lower()))


@op
def flip_left_right(image):
    return wrap(td.flip(raw(image), -2))


@op
def flip_up_down(image):
    return wrap(td.flip(raw(image), -3))


@op
def pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    x = raw(image)
    after = (offset_height, target_height - offset_height - x.shape[-3]), (offset_width, target_width - offset_width - x.shape[-2])
    return wrap(td.pad(x, [(0, 0)] * (x.ndim - 3) + [*after, (0, 0)]))


@op
def crop_to_bounding_box(image, offset_height, offset_width, target_height, target_width):
    x = convert(image)._t
    return wrap(x[..., offset_height : offset_height + target_height, offset_width : offset_width + target_width, :])
