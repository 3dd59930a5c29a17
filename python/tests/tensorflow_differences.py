"""Snippets of tensorflow_snippets where Tidemark differs on purpose, with the reason. A test says so if one of them agrees."""
DIFFERENT = {
    "data.padded_batch_that_does_not_fit_is_an_error": "the error is a UserError that names the row and the shapes, DataLossError there",
    "data.bucket_beyond_its_boundary_is_an_error": "the error is a UserError that names the element and its length, InternalError there",
    "keras_optimizers.sparse_gradients_of_a_repeated_row": "Keras adds the squares of the gradients of a repeated row; here the sum is squared, as for the dense gradient",
}
