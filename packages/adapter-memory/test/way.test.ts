/** How far it is from the driver's callback to the driver's ack. */
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, test } from "vitest"

/** Where the memory broker, which is its own driver, delivers the next message in the same call. */
const nextDelivery = "adapter-memory/src/internal/readyQueue.ts"

test("an acked message crosses 20 files at most, from the broker's delivery to its ack", async () => {
  const program = fileURLToPath(new URL("way.ts", import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=@requeue/source", program])
  const way = JSON.parse(stdout) as Record<string, ReadonlyArray<string>>
  const files = Object.keys(way).filter((file) => file !== nextDelivery)
  assert.isAtMost(files.length, 20, files.join(", "))
  // Fewer would mean that nothing was counted.
  assert.include(files, "core/src/consume/internal/arrival.ts")
  assert.include(files, "adapter-memory/src/internal/settle/settle.ts")
})
