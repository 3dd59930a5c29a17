#!/usr/bin/env python3
"""Compiles every snippet of the right column of docs/from_tensorflow.md.

usage: from_tensorflow.py PAGE COMPILER BUILD_FOLDER
"""
import os
import re
import subprocess
import sys

page, compiler, folder = sys.argv[1:]
PRELUDE = """#include <tidemark/tidemark.h>
namespace td = tidemark;
void snippet_{number}(td::Tensor x, td::Tensor y, td::Tensor w, td::Variable v, td::Tensor ids, td::Tensor mask,
                      td::Tensor loss, td::nn::Sequential model,
                      td::data::Dataset<std::tuple<td::Tensor, td::Tensor>> batches) {{
  const auto f = [](const td::Tensor& e) {{ return e * 2; }};
  static_cast<void>(std::tie(x, y, w, v, ids, mask, loss, model, batches, f));
#line {number} "{page}"
  {snippet};
}}
"""
rows = []
for number, line in enumerate(open(page, encoding="utf-8"), 1):
    found = re.fullmatch(r"\| .* \| `([^`]+)` \|\n", line)
    if found:
        rows.append((number, found[1]))
lines = [line for line in open(page, encoding="utf-8") if line.startswith("| ") and "TensorFlow | Tidemark" not in line]
if len(rows) != len(lines):
    sys.exit(f"{page}: {len(lines)} rows, of which {len(rows)} end in one snippet")
os.makedirs(folder, exist_ok=True)
source = os.path.join(folder, "from_tensorflow.cc")
with open(source, "w", encoding="utf-8") as out:
    for number, snippet in rows:
        out.write(PRELUDE.format(number=number, page=page, snippet=snippet))
done = subprocess.run([compiler, "-std=c++20", "-I.", "-fsyntax-only", "-Wall", "-Wno-unused-value", "-Wno-unused-result", source],
                      capture_output=True, text=True)
print(done.stderr)
print(f"{len(rows)} snippets" if done.returncode == 0 else "some snippets do not compile")
sys.exit(done.returncode)
