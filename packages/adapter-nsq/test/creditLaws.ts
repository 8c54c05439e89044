/**
 * The laws of a credit over connections, with sessions on scripted nsqd: whatever order messages come in, come again, are
 * settled, lost, or settled late, and whatever becomes of connections and of the credit.
 */
import * as fc from "fast-check"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type Delivery, Direct, Metadata } from "@requeue/core/port"
import * as NsqdClock from "../src/internal/connect/nsqdClock.ts"
import type { Connection } from "../src/internal/driver.ts"
import * as Credit from "../src/internal/consume/credit.ts"
import { type Receipt, receiptOf } from "../src/internal/consume/receipt.ts"
import * as Session from "../src/internal/consume/session.ts"
import * as Settle from "../src/internal/settle/settle.ts"

const lease = 1000
const identity = { version: "1.3.0", maxRdyCount: 2500, msgTimeout: lease, maxMsgTimeout: 10 * lease, notes: [] }
/** nsqd counts a lease from when it sends the message. */
const nsqdLease = 0.7 * lease
/** Milliseconds to nsqd and back, or less where ticks are closer together: less than the moment in which room is filled. */
const longestWay = 5
/** Milliseconds that pass while the credit does not tick. */
const longestPass = 50
const topic = { topic: "orders", channel: "requeue", isOwn: false }
const metadata = Metadata.make("m", 0)

/** One thing that happens, on one of the nsqd or to one of the deliveries. `amount` is of messages or of time. */
export interface Step {
  readonly what: keyof typeof weights
  readonly which: number
  readonly amount: number
}

/** How often each of them happens. */
const weights = {
  put: 4,
  settle: 3,
  release: 1,
  copy: 4,
  copyStored: 1,
  copyFailed: 4,
  extend: 3,
  pass: 3,
  steal: 2,
  cut: 1,
  connect: 2,
  leave: 1,
  credit: 2,
  pause: 1,
  tick: 4,
  rest: 1
} as const

/** How many nsqd there are, and what happens. */
export interface Plan {
  readonly count: number
  readonly steps: ReadonlyArray<Step>
}

const whats = Object.entries(weights).map(([what, weight]) => ({
  arbitrary: fc.constant(what as Step["what"]), // A record's own key.
  weight
}))

export const plans: fc.Arbitrary<Plan> = fc.record({
  count: fc.integer({ min: 1, max: 5 }),
  steps: fc.array(fc.record({ what: fc.oneof(...whats), which: fc.nat(5), amount: fc.integer({ min: 1, max: 6 }) }), {
    minLength: 5,
    maxLength: 80
  })
})

/** Steps that are written as `what which/amount, ...`. */
export const parse = (steps: string): ReadonlyArray<Step> =>
  [...steps.matchAll(/(\w+) (\d+)\/(\d+)/g)].map(([, what, which, amount]) => ({
    what: what as Step["what"], // Written by hand.
    which: Number(which),
    amount: Number(amount)
  }))

/** A message's frame as nsqd sends it. */
const payload = (id: string, attempts: number): Buffer => {
  const bytes = Buffer.alloc(26)
  bytes.writeUInt16BE(attempts, 8)
  bytes.write(id, 10)
  return bytes
}

/** A delivery that this process has. */
interface Had {
  readonly delivery: Delivery.Delivery
  readonly receipt: Receipt
  /** Whether it was taken for a copy that is under way. */
  isCopied: boolean
  /** Whether the core was told that it is lost, and leaves room for its handler until that ends. */
  isLost: boolean
}

/** The clock and the deliveries of one process. */
interface Process {
  now: number
  readonly had: Set<Had>
  ids: number
  /** Gives the credit anew, after the core was told of lost deliveries, or has one of them again. */
  renew: () => void
  /** Calls `arrive` when what an nsqd sends arrives. */
  send: (arrive: () => void) => void
}

const arriveAtOnce: Process["send"] = (arrive) => arrive()

/** One nsqd: it pushes while it has messages and less is in flight than it may, and takes back what is not extended. */
const nsqdOf = (name: string, process: Process, credit: Credit.Credit, onRdy: (by: number) => void) => {
  const node = { name, address: { host: name, port: 4150, http: undefined }, clock: NsqdClock.make() }
  const backlog: Array<string> = []
  const inFlight = new Map<string, number>()
  /** How often each message was delivered. */
  const deliveries = new Map<string, number>()
  let rdy = 0
  let session: Session.Session | undefined
  /** A session whose connection is lost, until there is another one. */
  let lost: Session.Session | undefined

  const push = (): void => {
    while (session !== undefined && backlog.length > 0 && inFlight.size < rdy) {
      const id = backlog.shift()!
      inFlight.set(id, process.now + nsqdLease)
      const attempts = (deliveries.get(id) ?? 0) + 1
      deliveries.set(id, attempts)
      const { receive } = session
      process.send(() => receive(payload(id, attempts)))
    }
  }

  const obey = (line: string): void => {
    const [name, id = ""] = line.split(" ")
    if (name === "RDY") {
      const before = rdy
      rdy = Number(id)
      onRdy(rdy - before)
    } else if (!inFlight.has(id)) session?.refuse(`E_${name}_FAILED ${name} ${id} failed ID not in flight`)
    else if (name === "TOUCH") inFlight.set(id, process.now + nsqdLease)
    else {
      inFlight.delete(id)
      if (name === "REQ") backlog.push(id)
    }
  }

  const connectionOf = (isOpen: () => boolean): Connection => ({
    clientId: name,
    identity,
    isOpen,
    heard: () => 0,
    write: (commands, done) => {
      if (!isOpen()) return done(new Error("gone"))
      for (const line of commands.trim().split("\n")) obey(line)
      done(null)
      // What it pushes comes later.
      queueMicrotask(push)
    },
    stop: () => Promise.resolve(),
    end: () => {},
    destroy: () => {}
  })

  const forget = (): void => {
    const gone = lost
    lost = undefined
    gone?.forget(() => {
      for (const had of process.had) had.isLost ||= had.receipt.session === gone
      process.renew()
    })
  }

  return {
    inFlight,
    rdy: () => rdy,
    isOpen: () => session !== undefined,
    waiting: () => backlog.length,
    put: (count: number): void => {
      for (let left = count; left > 0; left--) backlog.push(String(++process.ids).padStart(16, "0"))
      push()
    },
    /** Leases end; what ends is delivered again, or goes to another consumer. */
    expire: (isStolen: boolean): void => {
      for (const [id, ends] of inFlight) {
        if (ends > process.now) continue
        inFlight.delete(id)
        if (!isStolen) backlog.unshift(id)
      }
      push()
    },
    cut: (): void => {
      if (session === undefined) return
      lost = session
      session = undefined
      rdy = 0
      backlog.unshift(...inFlight.keys())
      inFlight.clear()
      lost.end()
    },
    connect: (): void => {
      if (session !== undefined) return
      forget()
      const own: { session?: Session.Session } = {}
      const made = Session.make({
        node,
        topic,
        connection: connectionOf(() => session === own.session),
        gone: Deferred.makeUnsafe(),
        elapsed: () => process.now,
        sessions: new Set(),
        decode: ({ attempts, body }) => ({ body, headers: {}, attempts, metadata, nonce: undefined }),
        isFinished: () => false,
        onDelivery: (delivery) => {
          const receipt = receiptOf(delivery)
          // A redelivery takes the place of what is still held.
          for (const had of process.had) if (!had.isCopied && had.receipt.id === receipt.id) process.had.delete(had)
          process.had.add({ delivery, receipt, isCopied: false, isLost: false })
          process.renew()
        }
      })
      own.session = made
      session = made
      made.begin(credit)
    },
    /** It is left for good, as when nsqlookupd does not know it any more. */
    leave: (): void => {
      if (session === undefined) forget()
    }
  }
}

const extend = Settle.extending("orders")

/** Commands of one turn leave together at its end; then comes what they ask for, and what that changes. */
const turn = async (): Promise<void> => {
  for (let left = 4; left > 0; left--) await Promise.resolve()
}

class Broken extends Error {}

const check = (law: string, holds: boolean, details: object): void => {
  if (!holds) throw new Broken(`${law}: ${JSON.stringify(details)}`)
}

/**
 * Lives a plan, and throws where a law is broken.
 *
 * Long, because each step is a line of it.
 */
export const live = async ({ count, steps }: Plan): Promise<void> => {
  const give = (): void => credit.set(told())
  const process: Process = { now: 0, had: new Set(), ids: 0, send: arriveAtOnce, renew: give }
  const credit = Credit.make(() => process.now)
  let limit = 0
  let isPaused = false
  const wanted = (): number => (isPaused ? 0 : limit)
  const lost = (): number => [...process.had].filter(({ isLost }) => isLost).length
  /** Handlers of lost deliveries keep their room. */
  const told = (): number => Math.max(0, wanted() - lost())
  const all = Array.from({ length: count }, (_, index) =>
    nsqdOf(`nsqd${index}`, process, credit, (by) => {
      const facts = { wanted: wanted(), shares: shares(), ofLost: ofLost() }
      check("none is used twice while it moves", by <= 0 || shares() + ofLost() <= wanted(), facts)
    })
  )

  const open = () => all.filter(({ isOpen }) => isOpen())
  const shares = (): number => open().reduce((sum, { rdy }) => sum + rdy(), 0)
  /** How many deliveries are lost, or on a lost connection. Their handlers may still run. */
  const ofLost = (): number =>
    [...process.had].filter(({ isLost, receipt }) => isLost || !receipt.session.isOpen()).length

  const end = (had: Had): void => {
    process.had.delete(had)
    give()
  }
  /** Ends a delivery whose handler has ended, unless its session still holds it. */
  const endUnless = (had: Had, isHeld: (receipt: Receipt) => boolean): boolean => {
    process.had.delete(had)
    const stays = isHeld(had.receipt)
    if (stays) process.had.add(had)
    else give()
    return stays
  }
  const take = (had: Had): boolean => endUnless(had, had.receipt.session.take)
  const answer = (had: Had, command: string): void => {
    end(had)
    had.receipt.session.answer(`${command}\n`, () => {})
  }
  const settle = (had: Had, name: "FIN" | "REQ"): void => {
    if (take(had)) answer(had, name === "FIN" ? `FIN ${had.receipt.id}` : `REQ ${had.receipt.id} 0`)
  }
  const fail = (had: Had): void => {
    if (endUnless(had, had.receipt.session.untake)) had.isCopied = false
  }

  /** What nsqd sends because of `before` is under way at the tick. */
  const tick = async (before = () => {}): Promise<void> => {
    // What is written leaves before any time passes.
    await turn()
    const pause = credit.pause()
    const passes = Math.min(longestPass, pause)
    const way = Math.min(longestWay, passes)
    process.now += passes - way
    const sent: Array<() => void> = []
    process.send = (arrive) => void sent.push(arrive)
    before()
    await turn()
    process.now += way
    if (passes === pause) credit.tick()
    process.send = arriveAtOnce
    for (const arrive of sent) arrive()
    await turn()
  }

  /** Everything that is under way comes to its end, and what waits is worked off. */
  const rest = async (): Promise<void> => {
    isPaused = false
    for (const had of process.had) if (had.isCopied) fail(had)
    for (const one of all) one.connect()
    give()
    // A round of turns for each message, and one more.
    const rounds = 2 + all.reduce((sum, one) => sum + one.waiting() + one.inFlight.size, 0)
    for (let left = limit === 0 ? 1 : rounds * (count + 6); left > 0; left--) {
      for (const had of process.had) settle(had, "FIN")
      await tick()
      for (const one of all) one.expire(false)
    }
    for (const had of process.had) settle(had, "FIN")
    await tick()
    const waiting = all.map((one) => one.waiting())
    check("what waits is delivered", limit === 0 || waiting.every((each) => each === 0), { limit, waiting })
    if (all.some(({ inFlight }) => inFlight.size > 0)) return
    check("all of the credit is given", shares() === limit, { limit, shares: all.map(({ rdy }) => rdy()) })
    if (limit > 0) await pile()
  }

  /** All work comes to one nsqd, and one message of it is settled after the other. */
  const pile = async (): Promise<void> => {
    const busy = all[process.ids % count]!
    const rounds = 4 * (count + 6)
    busy.put(2 * rounds + limit)
    let atWork = 0
    for (let round = 0; round < rounds; round++) {
      const [had] = process.had
      await tick(() => had !== undefined && settle(had, "FIN"))
      if (round >= rounds / 2) atWork += busy.inFlight.size
    }
    const mean = (2 * atWork) / rounds
    check("who has the work has all of the credit but one", mean >= limit - 1, { limit, mean })
    for (let left = 4 * rounds; left > 0 && busy.waiting() + process.had.size > 0; left--) {
      for (const had of process.had) settle(had, "FIN")
      await tick()
    }
  }

  const bounded = (before: number): void => {
    const had = process.had.size
    const reach = open().reduce((sum, { inFlight, rdy }) => sum + Math.max(rdy(), inFlight.size), ofLost())
    const facts = { told: told(), shares: shares(), reach, had, before }
    check("no more is given than the credit", shares() <= told(), facts)
    check("no more may come than the credit", reach <= Math.max(wanted(), had, before), facts)
  }

  for (const one of all) one.connect()
  for (const { amount, what, which } of steps) {
    const before = process.had.size
    const one = all[which % count]!
    const had = [...process.had][which % Math.max(1, process.had.size)]
    if (what === "put") one.put(amount)
    else if (what === "cut") one.cut()
    else if (what === "connect") one.connect()
    else if (what === "leave") one.leave()
    else if (what === "tick") await tick()
    else if (what === "rest") await rest()
    else if (what === "credit" || what === "pause") {
      if (what === "credit") limit = which
      isPaused = what === "pause"
      give()
    } else if (what === "pass" || what === "steal") {
      process.now += (amount * lease) / 4
      for (const each of all) each.expire(what === "steal")
    } else if (had === undefined) continue
    else if (what === "extend") {
      if (had.isCopied || had.isLost) continue
      Direct.run(extend([had.delivery]), Effect.runFork, (exit) => {
        had.isLost = Exit.isSuccess(exit) && exit.value.length > 0
        give()
      })
    } else if (had.isCopied) {
      if (what === "copyStored") answer(had, `FIN ${had.receipt.id}`)
      if (what === "copyFailed") fail(had)
    } else if (what === "settle") settle(had, "FIN")
    else if (what === "release") settle(had, "REQ")
    else if (what === "copy") {
      if (take(had)) had.isCopied = true
    }
    await turn()
    bounded(before)
  }
  await rest()
}
