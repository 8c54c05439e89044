import { once } from "node:events"
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { afterEach, assert, beforeEach, test } from "vitest"
import { wire, type Reader, type Wire } from "../src/wire.ts"

let server: Server
let between: Wire
/** All that each connection brought to the server. */
let seen: Array<Promise<string>>
/** The connections, as the server has them. */
let sockets: Array<Socket>

/** A command is a line. */
const reader = (): Reader => (input) => {
  const end = input.indexOf("\n")
  if (end < 0) return undefined
  const [name = "", about = ""] = input.toString("utf8", 0, end).split(" ")
  return { size: end + 1, name, about }
}

beforeEach(async () => {
  seen = []
  sockets = []
  server = createServer((socket) => {
    socket.on("error", () => {})
    socket.write("hello\n")
    sockets.push(socket)
    seen.push(text(socket))
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  between = await wire((server.address() as AddressInfo).port, reader) // the address of a TCP server
})

afterEach(async () => {
  await between.close()
  server.close()
})

/** Writes pieces on a connection of its own, and answers what the server saw of them. */
const send = async (...pieces: ReadonlyArray<string>): Promise<string> => {
  const socket = connect({ port: between.port, host: "127.0.0.1", noDelay: true })
  socket.on("error", () => {})
  const closed = new Promise((resolve) => socket.once("close", resolve))
  // The server has accepted it.
  await once(socket, "data")
  for (const piece of pieces) await new Promise<unknown>((resolve) => socket.write(piece, resolve))
  await (faulty ? closed : new Promise<void>((resolve) => socket.end(resolve)))
  return seen.at(-1)!
}

/** Whether the connection is to break by itself. */
let faulty = false

test.each([
  ["command", "PUB a\n"],
  ["answer", "PUB a\nFIN b\n"]
] as const)("a lost %s: the server sees what was sent before, and nothing after", async (part, expected) => {
  faulty = true
  const fault = between.loseNext(({ about, name }) => name === "FIN" && about === "b", part)
  assert.strictEqual(await send("PUB a\nFIN b\nPUB c\n"), expected)
  assert.isTrue(fault.happened())
})

test("a command that comes in pieces is lost with its end", async () => {
  faulty = true
  between.loseNext(({ name }) => name === "FIN", "command")
  assert.strictEqual((await send("PUB a\nFI", "N b\nPUB c\n")).slice(0, 6), "PUB a\n")
})

test("without a fault, or after its end, all passes", async () => {
  faulty = false
  const fault = between.loseNext(({ name }) => name === "FIN", "command")
  fault.end()
  assert.strictEqual(await send("PUB a\nFI", "N b\nPUB c\n"), "PUB a\nFIN b\nPUB c\n")
  assert.isFalse(fault.happened())
})

test("an answer that is kept back comes when the fault ends, and nothing is lost", async () => {
  faulty = false
  const fault = between.delayNext(({ name }) => name === "FIN")
  const socket = connect({ port: between.port, host: "127.0.0.1", noDelay: true })
  const heard: Array<string> = []
  socket.on("data", (data) => heard.push(String(data)))
  await once(socket, "data")
  const [answering] = sockets
  const commands = once(answering!, "data")
  socket.write("FIN a\n")
  assert.strictEqual(String((await commands)[0]), "FIN a\n")
  assert.isTrue(fault.happened())
  await new Promise<unknown>((resolve) => answering!.write("done\n", resolve))
  // What another connection hears meanwhile was written later.
  const other = connect({ port: between.port, host: "127.0.0.1", noDelay: true })
  await once(other, "data")
  assert.deepStrictEqual(heard, ["hello\n"])
  const told = once(socket, "data")
  fault.end()
  await told
  assert.strictEqual(heard.join(""), "hello\ndone\n")
  for (const each of [socket, other]) {
    const closed = once(each, "close")
    each.end()
    await closed
  }
})
