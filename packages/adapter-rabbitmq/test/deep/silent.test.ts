/** Connections that are lost while a channel is opened on them, and those on which the server answers nothing but heartbeats. */
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { connect, createServer, type AddressInfo, type Socket } from "node:net"
import { assert, test } from "vitest"
import { reader } from "../real/commands.ts"
import { shared } from "../real/server.ts"
import { drainIds, ids, on, outgoing, queueName, until } from "../world.ts"

const one = await shared()

type Fault = "answers nothing" | "is lost"
type Role = "publish" | "consume"

const heartbeat = 8

/** A proxy on which the next connection of a role has a fault as soon as a channel is opened there. */
const faulty = async () => {
  const sockets = new Set<Socket>()
  let next: { readonly fault: Fault; readonly role: Role } | undefined
  const server = createServer((client) => {
    const target = connect(Number(new URL(one.url).port), "127.0.0.1")
    const read = reader()
    let [input, name, isDeaf] = [Buffer.alloc(0), "", false]
    const end = () => [client, target].forEach((socket) => sockets.delete(socket.destroy()))
    for (const socket of [client, target]) sockets.add(socket.on("error", end).on("close", end))
    target.pipe(client)
    client.on("data", (bytes) => {
      if (name.length < 2000) name += bytes.toString("latin1")
      input = Buffer.concat([input, bytes])
      for (let command = read(input); command !== undefined; command = read(input)) {
        if (command.name === "channel" && next !== undefined && name.includes(`:${next.role}`)) {
          const { fault } = next
          next = undefined
          if (fault === "is lost") return end()
          isDeaf = true
        }
        if (!isDeaf || input[0] === heartbeat) target.write(input.subarray(0, command.size))
        input = input.subarray(command.size)
      }
    })
  })
  await new Promise<void>((resume) => server.listen(0, "127.0.0.1", resume))
  const url = new URL(one.url)
  url.hostname = "127.0.0.1"
  url.port = String((server.address() as AddressInfo).port) // It listens on TCP.
  const cut = () => sockets.forEach((socket) => socket.destroy())
  return {
    url: url.href,
    cut,
    arm: (role: Role, fault: Fault) => (next = { role, fault }),
    happened: () => next === undefined,
    close: () => server.close(cut)
  }
}

/** A broker whose two connections work, and are then made again, one of them with a fault. */
const afterFault = async (role: Role, fault: Fault, body: Parameters<typeof on>[1], queue: string) => {
  const proxy = await faulty()
  const limits = { requestTimeout: 2500, publishTimeout: 20_000, heartbeat: 1000, reconnectFirst: 20 }
  await on({ url: proxy.url, ...limits }, (broker) =>
    Effect.gen(function* () {
      yield* broker.publish([outgoing(queue, "first")])
      proxy.arm(role, fault)
      proxy.cut()
      yield* until("the loss to be noticed", () => broker.connection().state === "down")
      yield* body(broker)
      assert.isTrue(proxy.happened())
    })
  ).finally(proxy.close)
}

test.each(["answers nothing", "is lost"] as const)(
  "what waits for a channel to publish on is sent on the next connection where the first one %s",
  async (fault) => {
    const queue = queueName("parked")
    const send = (id: string) => (broker: Parameters<Parameters<typeof on>[1]>[0]) =>
      broker.publish([outgoing(queue, id)])
    await afterFault(
      "publish",
      fault,
      (broker) => Effect.forEach(ids(50), (id) => send(id)(broker), { concurrency: "unbounded" }),
      queue
    )
    assert.deepStrictEqual((await drainIds(one.url, queue)).toSorted(), ["first", ...ids(50)].toSorted())
  }
)

test("a connection on which nothing but heartbeats answers a declaration is made again", async () => {
  const queue = queueName("deaf")
  const told: Array<string> = []
  await afterFault(
    "consume",
    "answers nothing",
    (broker) =>
      broker.publish([outgoing(queue, "second")]).pipe(
        Effect.tapError(({ reason }) => Effect.sync(() => told.push(reason))),
        Effect.retry(Schedule.spaced(100)),
        Effect.timeout("10 seconds")
      ),
    queue
  )
  assert.deepStrictEqual(new Set(told), new Set(["Timeout"]))
  assert.deepStrictEqual(await drainIds(one.url, queue), ["first", "second"])
})
