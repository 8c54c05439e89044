import * as fc from "fast-check"
import { once } from "node:events"
import { connect, type Socket } from "node:net"
import { assert, test, vi } from "vitest"
import { server } from "./server.ts"
import { commands, frames, line } from "../real/traffic.ts"

const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
const sized = (...parts: ReadonlyArray<Buffer>) => {
  const body = Buffer.concat(parts)
  return Buffer.concat([uint32(body.length), body])
}

/** Cuts bytes at the given places, wherever these are. */
const cut = (bytes: Buffer, places: ReadonlyArray<number>): ReadonlyArray<Buffer> => {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1))), bytes.length].toSorted((a, b) => a - b)
  return ends.map((end, index) => bytes.subarray(ends[index - 1] ?? 0, end))
}

test("commands and frames are the same however their bytes arrive", () => {
  const body = Buffer.from("RDY 5\nFIN x\n  V2")
  const sent = Buffer.concat([
    Buffer.from("  V2IDENTIFY\n"),
    sized(Buffer.from("{}")),
    Buffer.from("SUB orders all\nRDY 1\nPUB orders\n"),
    sized(body),
    Buffer.from("REQ 0123456789abcdef 1500\nCLS\n")
  ])
  const message = sized(uint32(2), Buffer.alloc(8), Buffer.from([0x9c, 0x40]), Buffer.from("0123456789abcdef"), body)
  const received = Buffer.concat([sized(uint32(0), Buffer.from("OK")), message, sized(uint32(1), Buffer.from("E_BAD"))])
  fc.assert(
    fc.property(fc.array(fc.nat()), (places) => {
      const [fromClient, fromServer] = [commands(), frames()]
      assert.deepStrictEqual(
        cut(sent, places)
          .flatMap(fromClient)
          .map(({ name, args, body: own }) => [name, ...args, own?.toString()]),
        [
          ["IDENTIFY", "{}"],
          ["SUB", "orders", "all", undefined],
          ["RDY", "1", undefined],
          ["PUB", "orders", body.toString()],
          ["REQ", "0123456789abcdef", "1500", undefined],
          ["CLS", undefined]
        ]
      )
      assert.deepStrictEqual(cut(received, places).flatMap(fromServer), [
        { from: "nsqd", name: "response", text: "OK" },
        { from: "nsqd", name: "message", timestamp: 0n, id: "0123456789abcdef", attempts: 40_000, body },
        { from: "nsqd", name: "error", text: "E_BAD" }
      ])
    })
  )
})

const {
  wires: [between]
} = await server()

const dial = async (): Promise<Socket> => {
  const socket = connect(between.port, "127.0.0.1")
  socket.on("error", () => {})
  await once(socket, "connect")
  socket.write("  V2")
  return socket
}

test("a client's life as it passes by, each connection by itself; cut ends it", async () => {
  const lines = () => between.entries.map(line)
  const seen = (text: RegExp) => vi.waitUntil(() => lines().find((each) => text.test(each)))
  const publisher = await dial()
  publisher.write(Buffer.concat([Buffer.from("PUB wire\n"), sized(Buffer.from("hello"))]))
  await seen(/^1 < response OK/)
  const consumer = await dial()
  consumer.write("SUB wire all\nRDY 1\n")
  const [, , , id = ""] = (await seen(/^2 < message/)).split(" ")
  consumer.write(`REQ ${id} 0\n`)
  await seen(/^2 < message \S+ 2/)
  consumer.write(`FIN ${id}\nFIN ${id}\n`)
  await seen(/^2 < error/)
  assert.deepStrictEqual(lines(), [
    "1 > PUB wire",
    "1 < response OK",
    "2 > SUB wire all",
    "2 > RDY 1",
    "2 < response OK",
    `2 < message ${id} 1`,
    `2 > REQ ${id} 0`,
    `2 < message ${id} 2`,
    `2 > FIN ${id}`,
    `2 > FIN ${id}`,
    `2 < error E_FIN_FAILED FIN ${id} failed ID not in flight`
  ])
  assert.deepStrictEqual(
    between.sent("PUB").map(({ body }) => body?.toString()),
    ["hello"]
  )
  assert.deepStrictEqual(
    between.sent("FIN", "RDY").map(({ args }) => args),
    [["1"], [id], [id]]
  )
  const times = between.entries.map(({ at }) => at)
  assert.deepStrictEqual(
    times,
    times.toSorted((a, b) => a - b)
  )

  const ended = new Promise((resolve) => consumer.once("close", resolve))
  between.cut()
  await ended
})
