/** Daemons that forget: what they promise, and each of their unkindnesses. */
import { assert, describe, it } from "@effect/vitest"
import type { Up } from "../src/lossy/Protocol.ts"
import { begin, connect, consume, daemon, parcel, second } from "./lossyWorld.ts"

const fin = (id: number): Up => ({ _tag: "Fin", id, of: 0 })
const req = (id: number, delay: number): Up => ({ _tag: "Req", id, of: 0, delay })
const pub = (key: number, delay = 0): Up => ({ _tag: "Pub", queue: "work", parcel: parcel(key), delay, of: undefined })
const tags = (frames: ReadonlyArray<{ readonly _tag: string }>): ReadonlyArray<string> => frames.map(({ _tag }) => _tag)

describe("a daemon", () => {
  it("hands out as many messages as a connection is ready for, and another one for each that is finished", () => {
    const begun = begin()
    const server = daemon(begun)
    for (const key of [1, 2, 3]) server.publish("work", parcel(key))
    const connection = consume(begun, server, 2)
    const [first, ...others] = connection.messages()
    assert.strictEqual(others.length, 1)
    connection.up(fin(first!.id))
    begun.pass(2)
    assert.strictEqual(connection.messages().length, 1)
    assert.deepStrictEqual(begun.facts("Gone").at(-1)?.why, "settled")
    connection.up({ _tag: "Rdy", count: 0 })
    begun.pass(40 * second)
    assert.deepStrictEqual(connection.messages(), [])
    assert.deepStrictEqual(server.counts("work"), { ready: 2, inFlight: 0, delayed: 0 })
  })

  it("confirms publishes, and answers nothing to what settles", () => {
    const begun = begin()
    const server = daemon(begun)
    const connection = consume(begun, server, 1)
    connection.up(pub(1))
    begun.pass(2)
    const [message] = connection.messages()
    connection.up(fin(message!.id))
    begun.pass(2)
    assert.deepStrictEqual(connection.came(), [])
  })

  it("tells of FIN, REQ and TOUCH for what is not in flight on their connection", () => {
    const begun = begin()
    const server = daemon(begun)
    server.publish("work", parcel(1))
    const [message] = consume(begun, server, 1).messages()
    const { id } = message!
    const other = connect(begun, server, "b1")
    for (const frame of [fin(id), req(id, 0), { _tag: "Touch", id } as const]) other.up(frame)
    begun.pass(2)
    const refused = { _tag: "NotInFlight" as const, id }
    assert.deepStrictEqual(other.came(), [refused, refused, refused])
    assert.strictEqual(server.counts("work").inFlight, 1)
  })

  it("settles the next delivery of a message by a FIN that is too late, on the same connection", () => {
    const begun = begin()
    const server = daemon(begun)
    server.publish("work", parcel(1))
    const connection = consume(begun, server, 1)
    const [first] = connection.messages()
    begun.pass(11 * second)
    const [again] = connection.messages()
    assert.deepInclude(again, { id: first!.id, attempts: 2 })
    connection.up({ _tag: "Fin", id: first!.id, of: first!.delivery })
    begun.pass(2)
    assert.deepInclude(begun.facts("Gone").at(-1), { why: "settled", delivery: first!.delivery })
    assert.deepStrictEqual(connection.came(), [])
  })

  it("keeps what is in flight on a connection that is gone until its lease has ended", () => {
    const begun = begin()
    const server = daemon(begun)
    server.publish("work", parcel(1))
    const connection = consume(begun, server, 1)
    connection.machine.kill()
    begun.pass(9 * second)
    const other = consume(begun, server, 1, "b1")
    assert.deepStrictEqual(other.messages(), [])
    begun.pass(2 * second)
    assert.deepInclude(other.messages()[0], { attempts: 2 })
    assert.deepInclude(begun.facts("Back")[0], { why: "lease" })
  })

  it("renews a lease that is touched, up to its longest time", () => {
    const begun = begin()
    const server = daemon(begun)
    server.publish("work", parcel(1))
    const connection = consume(begun, server, 1)
    const [message] = connection.messages()
    for (let touched = 8; touched < 30; touched += 8) {
      begun.pass(8 * second)
      connection.up({ _tag: "Touch", id: message!.id })
    }
    begun.pass(5 * second)
    assert.deepStrictEqual(connection.messages(), [])
    begun.pass(2 * second)
    assert.strictEqual(connection.messages().length, 1)
  })

  it("puts what comes back to the end", () => {
    const begun = begin()
    const server = daemon(begun)
    for (const key of [1, 2]) server.publish("work", parcel(key))
    const connection = consume(begun, server, 1)
    const [message] = connection.messages()
    connection.up(req(message!.id, 0))
    begun.pass(2)
    assert.deepStrictEqual(
      begun.facts("HandedOut").map(({ key }) => key),
      [1, 2]
    )
  })

  it("looks every 100 ms for what is due, and in a new channel only after up to 5 seconds", () => {
    const begun = begin()
    const server = daemon(begun)
    const publisher = connect(begun, server)
    publisher.up(pub(1, 250))
    publisher.up({ ...pub(2, 250), queue: "new" } as Up)
    begun.pass(2)
    assert.deepStrictEqual(
      begun.facts("Stored").map(({ due }) => due),
      [0, 5300, 10_000]
    )
  })

  it("counts each message that it sends, in 16 bits", () => {
    const begun = begin([], { latency: 0.2 })
    const server = daemon(begun)
    server.publish("work", parcel(1))
    const connection = consume(begun, server, 1)
    let attempts = 0
    for (let sent = 1; sent <= 0x10001; sent++) {
      const [message] = connection.messages()
      attempts = message!.attempts
      if (sent === 0x10000) assert.strictEqual(attempts, 0)
      connection.up(req(message!.id, 0))
      begun.pass(1)
    }
    assert.strictEqual(attempts, 1)
  })

  it("cuts the delay of a REQ to its cap, and refuses a DPUB with a longer one", () => {
    const begun = begin()
    const server = daemon(begun)
    server.publish("work", parcel(1))
    const connection = consume(begun, server, 1)
    const [message] = connection.messages()
    connection.up(req(message!.id, 3600 * second))
    connection.up(pub(2, 61 * second))
    begun.pass(2)
    assert.strictEqual(begun.facts("Back")[0]?.due, 65_100)
    assert.deepStrictEqual(connection.came(), [{ _tag: "Refused", reason: "Unsupported" }])
  })

  it("reads what was sent before an orderly end", () => {
    const begun = begin()
    const server = daemon(begun)
    const { up, wire } = connect(begun, server)
    up(pub(1))
    wire.cut(true)
    begun.pass(2)
    assert.strictEqual(server.counts("work").ready, 1)
  })

  it("reads nothing after a publish that it refuses", () => {
    const refused = { key: 1, of: "copy", until: 5, reason: "AccessRefused" } as const
    const begun = begin([], { refusals: [refused] })
    const server = daemon(begun)
    const connection = connect(begun, server)
    for (const key of [1, 2]) connection.up(pub(key))
    begun.pass(2)
    assert.deepStrictEqual(connection.came(), [{ _tag: "Refused", reason: "AccessRefused" }])
    assert.strictEqual(server.counts("work").ready, 0)
  })

  it("cannot store for a while: then it says so, and closes the connection as well", () => {
    const begun = begin(["busy a1 publish nsqd1 1"])
    const server = daemon(begun)
    const publish = (): ReadonlyArray<string> => {
      const connection = connect(begun, server)
      connection.up(pub(1))
      begun.pass(2)
      return connection.came().map((frame) => (frame._tag === "Refused" ? frame.reason : frame._tag))
    }
    assert.deepStrictEqual(publish(), ["Throttled"])
    server.throttle(second)
    assert.deepStrictEqual(publish(), ["Throttled"])
    begun.pass(second)
    assert.deepStrictEqual(publish(), ["Ok"])
  })
})

describe("a daemon, with faults,", () => {
  it("ends a lease early when its clock steps ahead", () => {
    const begun = begin(["echo nsqd1 clock 1"])
    const server = daemon(begun)
    server.publish("work", parcel(1))
    const connection = consume(begun, server, 2)
    begun.pass(9 * second)
    assert.deepStrictEqual(
      connection.messages().map(({ attempts }) => attempts),
      [1, 2]
    )
  })

  it("has stored what it does not confirm, or has not: then its connection is dead", () => {
    for (const [kind, stored] of [
      ["lostAnswer", 1],
      ["lostRequest", 0]
    ] as const) {
      const begun = begin([`${kind} a1 publish nsqd1 1`])
      const server = daemon(begun)
      const connection = connect(begun, server)
      for (const key of [1, 2]) connection.up(pub(key))
      begun.pass(20 * second)
      assert.deepStrictEqual(connection.came(), [])
      assert.isTrue(connection.isBroken())
      assert.strictEqual(server.counts("work").ready, stored)
    }
  })

  it("reads late, and meanwhile nothing else of the connection", () => {
    const begun = begin(["late a1 to nsqd1 1"])
    const server = daemon(begun)
    const connection = connect(begun, server)
    for (const key of [1, 2]) connection.up(pub(key))
    begun.pass(2)
    assert.deepStrictEqual(connection.came(), [])
    begun.pass(20 * second)
    assert.deepStrictEqual(tags(connection.came()), ["Ok", "Ok"])
  })
})

describe("a daemon that ends", () => {
  /** One message in flight, one deferred, one that waits. */
  const full = (inMemory: boolean) => {
    const begun = begin()
    const server = daemon(begun, "nsqd1", { inMemory })
    server.publish("work", parcel(1))
    const connection = consume(begun, server, 1)
    connection.up(pub(2, 50 * second))
    connection.up(pub(3))
    begun.pass(2)
    assert.deepStrictEqual(server.counts("work"), { ready: 1, inFlight: 1, delayed: 1 })
    return { begun, server, connection }
  }

  it("in order, keeps everything with its count, and forgets delays", () => {
    const { begun, connection, server } = full(true)
    server.restart("orderly", second)
    assert.isUndefined(server.connect(connection.machine, "again", { onDown: () => {}, onBroken: () => {} }))
    begun.pass(2 * second)
    assert.isTrue(connection.isBroken())
    assert.deepStrictEqual(
      consume(begun, server, 3)
        .messages()
        .map(({ attempts }) => attempts)
        .toSorted((one, other) => one - other),
      [1, 1, 2]
    )
    assert.deepStrictEqual(
      begun.facts("Back").map(({ delivery, why }) => [delivery !== undefined, why]),
      [
        [true, "restart"],
        [false, "restart"]
      ]
    )
  })

  it("by force, loses what is in flight or deferred, and keeps what is on disk", () => {
    const { begun, server } = full(false)
    server.restart("kill", second)
    begun.pass(2 * second)
    assert.deepStrictEqual(server.counts("work"), { ready: 1, inFlight: 0, delayed: 0 })
    assert.deepStrictEqual(
      begun
        .facts("Gone")
        .slice(1)
        .map(({ key, why }) => [key, why]),
      [
        [1, "forgotten"],
        [2, "forgotten"]
      ]
    )
  })

  it("by force, loses what waits in memory", () => {
    const { begun, server } = full(true)
    server.restart("kill", second)
    begun.pass(2 * second)
    assert.deepStrictEqual(server.counts("work"), { ready: 0, inFlight: 0, delayed: 0 })
  })

  it("takes away what is in flight and deferred when a queue is emptied", () => {
    const { begun, connection, server } = full(false)
    const [{ id } = { id: 0 }] = connection.messages()
    server.empty("work")
    connection.up(fin(id))
    begun.pass(2)
    assert.deepStrictEqual(connection.came(), [{ _tag: "NotInFlight", id }])
    assert.deepStrictEqual(server.counts("work"), { ready: 0, inFlight: 0, delayed: 0 })
  })
})
