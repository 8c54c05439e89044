import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { assert, test } from "vitest"
import * as Uuid from "../../src/runtime/Uuid.ts"

setFlagsFromString("--expose-gc")
const collect: unknown = runInNewContext("gc")
// The flag has put it there.
const heap = (): number => ((collect as () => void)(), process.memoryUsage().heapUsed)

test("is a random UUID, each another", () => {
  const uuids = Array.from({ length: 1000 }, Uuid.make)
  for (const uuid of uuids) assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.strictEqual(new Set(uuids).size, uuids.length)
})

test("takes the memory of its text", () => {
  const count = 20_000
  const bytesOf = (make: () => string): number => {
    const before = heap()
    const all = Array.from({ length: count }, make)
    return (heap() - before) / all.length
  }
  assert.isAbove(
    bytesOf(() => crypto.randomUUID()),
    300
  )
  assert.isBelow(bytesOf(Uuid.make), 100)
})
