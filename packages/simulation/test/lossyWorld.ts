/** A world with daemons that forget, for their tests. */
import * as Generate from "../src/Generate.ts"
import type { Entry } from "../src/History.ts"
import type { Down, Message, Settings } from "../src/lossy/Protocol.ts"
import * as Server from "../src/lossy/Server.ts"
import type { Scenario } from "../src/Scenario.ts"
import * as Machine from "../src/world/Machine.ts"
import type { Parcel } from "../src/world/Store.ts"
import * as World from "../src/world/World.ts"

export const second = 1000

export const settings: Settings = {
  lease: 10 * second,
  longestLease: 30 * second,
  cap: 60 * second,
  inMemory: false
}

/** A message of a producer outside. */
export const parcel = (key: number): Parcel => ({
  body: Buffer.from(`{"key":${key}}`),
  headers: {},
  metadata: undefined,
  nonce: undefined
})

/** A world in which exactly these faults happen. Each way takes a millisecond at most. */
export const begin = (only: ReadonlyArray<string> = [], more: Partial<Scenario> = {}) => {
  const bare = { sendings: [], operations: [], processes: [], refusals: [], latency: 1, calmAt: 1e9 }
  const world = World.make({ ...Generate.scenario(1, ["lossy"]), ...bare, only, ...more })
  const pass = (millis: number): void => {
    const until = world.now() + millis
    world.after(millis, () => {})
    while (world.step(until)) continue
  }
  const facts = <Tag extends Entry["_tag"]>(tag: Tag) =>
    world.history.filter((entry): entry is Extract<Entry, { readonly _tag: Tag }> => entry._tag === tag)
  /** The names of the facts of these kinds, in order. */
  const history = (...kinds: ReadonlyArray<Entry["_tag"]>): ReadonlyArray<string> =>
    world.history.map(({ _tag }) => _tag).filter((tag) => kinds.includes(tag))
  return { world, pass, facts, history }
}

export type Begun = ReturnType<typeof begin>

/** A daemon whose channel was made long ago. */
export const daemon = (begun: Begun, name = "nsqd1", own: Partial<Settings> = {}): Server.Server => {
  const server = Server.make(begun.world, name, { ...settings, ...own })
  server.publish("work", parcel(0))
  server.empty("work")
  begun.pass(5 * second)
  return server
}

/** A connection to a daemon, and what has come on it. */
export const connect = ({ world }: Begun, server: Server.Server, process = "a1") => {
  const machine = Machine.make(world, process, Machine.trueClock)
  const came: Array<Down> = []
  let isBroken = false
  const wire = server.connect(machine, `${process} wire`, {
    onDown: (frame) => came.push(frame),
    onBroken: () => (isBroken = true)
  })
  if (wire === undefined) throw new Error("the daemon is down")
  return {
    machine,
    wire,
    up: wire.up,
    isBroken: () => isBroken,
    /** All frames since it was asked last. */
    came: () => came.splice(0),
    /** The messages among them. */
    messages: () => came.splice(0).filter((frame): frame is Message => frame._tag === "Message")
  }
}

/** A connection that takes so many messages at a time. */
export const consume = (begun: Begun, server: Server.Server, count: number, process = "a1") => {
  const connection = connect(begun, server, process)
  connection.up({ _tag: "Sub", queue: "work" })
  connection.up({ _tag: "Rdy", count })
  begun.pass(2)
  return connection
}
