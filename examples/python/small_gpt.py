"""A transformer learns a short text by its characters, and goes on where a few words end."""

import numpy as np

import tidemark as td
from table import is_small
from tidemark import nn

TEXT = (
    "the tide comes in over the flat sand, and the boats that leaned on their sides stand up one by one. the tide "
    "goes out again, and what it leaves is a line of weed and shells along the wall: the highest line the water "
    "reached. the harbour master reads that line each morning. he writes the number down, and by the number he knows "
    "how high to build the wall, how long to cut the ropes, and when to sleep. the sea keeps no secrets from a man "
    "who keeps a book. "
)
WIDE, TOKENS = 48, 32
LETTERS = sorted(set(TEXT))


class Block(nn.Module):
    def __init__(self):
        self.before, self.between = nn.LayerNorm(), nn.LayerNorm()
        self.attention = nn.MultiHeadAttention(4, WIDE // 4, causal=True)
        self.up, self.down = nn.Dense(4 * WIDE, activation=td.gelu), nn.Dense(WIDE)

    def __call__(self, x):
        h = x + self.attention(self.before(x))
        return h + self.down(self.up(self.between(h)))


class GPT(nn.Module):
    def __init__(self, depth):
        self.letters, self.places = nn.Embedding(len(LETTERS), WIDE), nn.Embedding(TOKENS, WIDE)
        self.blocks = [Block() for _ in range(depth)]
        self.last = nn.LayerNorm()

    def __call__(self, ids):
        h = self.letters(ids) + self.places(td.arange(ids.shape[1]))
        for block in self.blocks:
            h = block(h)
        return td.matmul(self.last(h), self.letters.table, transpose_b=True)  # The same table both ways.


def main():
    td.random.seed(1)
    model, steps = GPT(1 if is_small() else 2), 60 if is_small() else 400
    rate = nn.schedules.warm_up(10, nn.schedules.cosine(1e-2, steps=400))
    optimizer = nn.AdamW(rate, weight_decay=0.01, clip_global_norm=1.0, decays=lambda v: len(v.shape) > 1)

    @td.function
    def step(x, y):
        with td.GradientTape() as tape:
            loss = nn.losses.sparse_categorical_crossentropy(y, model(x))
        optimizer.minimize(tape, loss, model)
        return loss

    whole = np.array([LETTERS.index(letter) for letter in TEXT], np.int32)
    random = np.random.default_rng(1)

    def pieces():
        """Pieces of the text that begin anywhere, and the same one letter on."""
        at = random.integers(0, len(TEXT) - TOKENS - 1, (16, 1)) + np.arange(TOKENS)
        return whole[at], whole[at + 1]

    x, y = pieces()
    with nn.Training():
        print(f"a step is planned to take {step.plan(x, y).peak} beside the parameters and the optimizer's state")
        losses = [float(step(*pieces())) for _ in range(steps)]
    print(f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} after {steps} steps")

    next_letter = td.function(lambda ids: td.argmax(model(ids)[0, -1], -1))
    told = "the tide comes in over the flat "
    for _ in range(48):
        ids = np.array([[LETTERS.index(letter) for letter in told[-TOKENS:]]], np.int32)
        told += LETTERS[int(next_letter(ids))]
    print(told)
    assert losses[-1] < (2.4 if is_small() else 0.3)


if __name__ == "__main__":
    main()
