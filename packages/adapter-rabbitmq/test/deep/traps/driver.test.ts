/** The parts of the driver that the adapter uses and that are not documented. A new version of it may change them. */
import { connect } from "amqplib"
import { assert, test } from "vitest"
import * as Frames from "../../frames.ts"
import { shared } from "../../real/server.ts"
import { queueName } from "../../world.ts"
import { raw } from "./trap.ts"

const { url } = await shared()

test("it takes frames one by one from the bytes that have come", async () => {
  const model = await connect(url)
  const { recvFrame, rest } = model.connection as unknown as { readonly recvFrame: unknown; readonly rest: unknown }
  assert.isFunction(recvFrame)
  assert.isTrue(Buffer.isBuffer(rest))
  await model.close()
})

test("it lets a byte array without a name write itself, after a length of 0, its tag and four bytes", async () => {
  const queue = queueName("driver")
  const before: Array<string> = []
  const content = Buffer.from("content")
  content.copy = (target, at = 0) => {
    before.push(Buffer.from(target.buffer, target.byteOffset + at - 6, 6).toString("hex"))
    return Buffer.from("CONTENT").copy(target, at)
  }
  await raw(url, async (channel) => {
    await channel.assertQueue(queue)
    channel.sendToQueue(queue, Buffer.from(""), { headers: { "": content } })
  })
  assert.deepStrictEqual(before, ["007800000007"])
  const client = await Frames.open(url)
  const got = await client.get(queue)
  client.end()
  assert.include(Frames.parts(got!.properties).headers!.toString(), "CONTENT")
})
