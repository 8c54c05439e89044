/** How copies that processes publish on a simulated nsqd are attributed to the deliveries that they were made of. */
import { Metadata } from "@requeue/core/port"
import { assert, test } from "vitest"
import * as Generate from "../../src/Generate.ts"
import * as Parcels from "../../src/nsq/Parcels.ts"
import * as Purposes from "../../src/nsq/Purposes.ts"
import type { Asked } from "../../src/History.ts"
import * as Machine from "../../src/world/Machine.ts"
import * as World from "../../src/world/World.ts"

const [process, client, address] = ["a1", "a1-1", "nsqd1:4150"]
const retry: Asked = { tag: "Retry", delay: 0, reason: undefined, queue: undefined, cut: 0 }
const plain = { body: Buffer.from(`{"n":7}`), headers: {} }
const enveloped = Parcels.write({ ...plain, metadata: Metadata.encode(Metadata.make("m7", 0)) })

const story = () => {
  const world = World.make({ ...Generate.scenario(1), processes: [], sendings: [] })
  const purposes = Purposes.make(world)
  const machine = { name: process, wallClock: () => 0 } as Machine.Machine // All that purposes need.
  return {
    /** A message is delivered, and its retry requested. Returns its bytes as the process reads them. */
    deliver: (number: number, message: Buffer): Buffer => {
      const id = String(number).padStart(16, "0")
      purposes.given(process, 7, id, { clientId: client, attempts: 1, number })
      const payload = Buffer.concat([Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 1]), Buffer.from(id), message])
      const frame = purposes.arrived(client, { _tag: "Message", payload })
      assert(frame._tag === "Message")
      world.record({ _tag: "Asked", process, delivery: number, settlement: retry })
      return frame.payload.subarray(26)
    },
    publish: (body: Buffer): number | undefined => {
      const command = { name: "PUB", args: ["work"], body }
      purposes.written(machine, address, client, command)
      return purposes.stored(command)
    }
  }
}

test("a copy that is repeated after a lost answer belongs to its delivery, though another one has no copy yet", () => {
  const { deliver, publish } = story()
  const first = deliver(1, enveloped)
  assert.strictEqual(publish(first), 1)
  const other = deliver(2, enveloped)
  assert.deepStrictEqual([publish(first), publish(other)], [1, 2])
})

test("a copy without a number belongs to a delivery without an envelope", () => {
  const { deliver, publish } = story()
  const foreign = deliver(1, plain.body)
  assert.deepStrictEqual(foreign, plain.body)
  assert.strictEqual(publish(enveloped), 1)
  deliver(2, enveloped)
  assert.strictEqual(publish(enveloped), 1)
})
