#!/usr/bin/env bash
# A shard of Qdrant's edge engine that was made with int8 or product quantization searches by whole numbers until `optimize()`.
#
# `EdgeVectorParams(quantization_config=...)` takes four kinds alike. The guess before it was run: each holds from the first
# point on, or is refused. What is asked for without scoring again (`rescore=False`) tells by its scores which numbers it used.
#
# Seen (2026-11-30, qdrant-edge-py 0.9.0, CPython 3.11, 12,000 vectors of 64 numbers): with binary and TurboQuant codes the
# scores are the codes' at once. With int8 and product codes they are the exact ones to 1e-6, at the same time and room as
# without, until `optimize()` has made a segment of what is there (`indexing_threshold`); then they are the codes'. Nothing says so.
# Who never optimizes, as where a search may not wait for it, has those two in vain.
set -euo pipefail
version=0.9.0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q "qdrant-edge-py==$version"
cat > run.py <<'P'
import math
import random
import sys

import qdrant_edge as engine

dice = random.Random(7)


def unit():
    numbers = [dice.gauss(0, 1) for _ in range(64)]
    length = math.hypot(*numbers)
    return [one / length for one in numbers]


VECTORS, ASKED = [unit() for _ in range(12_000)], unit()
EXACT = sorted((sum(map(float.__mul__, vector, ASKED)) for vector in VECTORS), reverse=True)[:10]


def off_by(shard):
    """How far the ten best scores are from the exact ones."""
    codes = engine.SearchParams(quantization=engine.QuantizationSearchParams(rescore=False))
    request = engine.QueryRequest(limit=10, query=engine.Query.Nearest(ASKED), params=codes)
    return max(abs(found.score - best) for found, best in zip(shard.query(request), EXACT))


KINDS = {
    "int8": engine.ScalarQuantizationConfig(engine.ScalarType.Int8, always_ram=True),
    "product": engine.ProductQuantizationConfig(engine.CompressionRatio.X4, True),
    "binary": engine.BinaryQuantizationConfig(always_ram=True),
    "turbo": engine.TurboQuantQuantizationConfig(always_ram=True),
}
seen = {}
for name, kind in KINDS.items():
    vectors = engine.EdgeVectorParams(size=64, distance=engine.Distance.Dot, quantization_config=kind)
    optimizers = engine.EdgeOptimizersConfig(indexing_threshold=100)
    shard = engine.EdgeShard.create(sys.argv[1] + "/" + name, engine.EdgeConfig(vectors=vectors, optimizers=optimizers))
    points = [engine.Point(number, vector, {}) for number, vector in enumerate(VECTORS)]
    shard.update(engine.UpdateOperation.upsert_points(points))
    before = off_by(shard)
    shard.optimize()
    seen[name] = before > 1e-5, off_by(shard) > 1e-5
    print(f"{name}: by codes before optimize() | {seen[name][0]} | after it | {seen[name][1]}")
    shard.close()
late, at_once = (False, True), (True, True)
sys.exit(0 if seen == {"int8": late, "product": late, "binary": at_once, "turbo": at_once} else 1)
P
echo "qdrant-edge-py $version"
mkdir shards
for name in int8 product binary turbo; do mkdir "shards/$name"; done
if venv/bin/python run.py "$work/shards"; then
    echo "as seen: int8 and product codes wait for optimize(), binary and turbo don't"
else
    echo "changed: all kinds are used at the same time, or one is refused"
    exit 1
fi
