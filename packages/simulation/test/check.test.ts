import { describe, expect, it } from "vitest"
import * as Checker from "../src/check/Checker.ts"
import type { Asked } from "../src/History.ts"
import type { Scenario } from "../src/Scenario.ts"
import * as Story from "./Story.ts"

const { ack, call, deadLetter, release, retry } = Story

/** The laws that a story breaks in a world, each once. */
const broken = (tell: (story: Story.Story) => void, world: Scenario = Story.scenario()) => {
  const story = Story.make()
  tell(story)
  return [...new Set(Checker.check(world, story.history).map(({ law }) => law))]
}

/** A message that is sent, and its first delivery to `a1`. */
const first = (story: Story.Story, credit = 1) => {
  story.start("a1", credit)
  const copy = story.send(1)
  story.wait(1)
  return { copy, delivery: story.deliver(copy, 1, "a1") }
}

describe("no law is broken", () => {
  it("by a message that succeeds", () => {
    const tell = (story: Story.Story) => {
      const { delivery } = first(story)
      story.run(delivery)
      story.settle(delivery, ack)
      story.say({ _tag: "Calm" })
      story.end()
    }
    expect(broken(tell)).toEqual([])
  })

  it("by retries to the end, a redrive of the dead letter, and an ack", () => {
    const tell = (story: Story.Story) => {
      let { delivery } = first(story)
      for (const delay of [1000, 5000]) {
        story.run(delivery, { error: "error" })
        const copy = story.settle(delivery, retry(delay))
        story.wait(delay)
        delivery = story.deliver(copy, 1, "a1", delay === 1000 ? 2 : 3)
      }
      story.run(delivery, { error: "error" })
      const letter = story.settle(delivery, deadLetter("retries-exhausted"))
      story.say({ _tag: "Operates", operation: 1, what: "Redrive" })
      const taken = story.deliver(letter, 1, "operator")
      const redriven = story.store(1, { process: "operator" })
      story.settle(taken, ack)
      story.say({ _tag: "Operated", operation: 1, what: "Redrive", count: 1, failed: undefined })
      const again = story.deliver(redriven, 1, "a1")
      story.run(again)
      story.settle(again, ack)
      story.say({ _tag: "Calm" })
      story.end()
    }
    expect(broken(tell)).toEqual([])
  })
})

describe("books", () => {
  it("a send that is confirmed before anything is stored", () => {
    const tell = (story: Story.Story) => {
      story.say({ _tag: "Sending", key: 1, id: "m1", queue: "work", earliest: 0 }, { _tag: "Sent", key: 1 })
      story.store(1)
    }
    expect(broken(tell)).toEqual(["books"])
  })

  it("an original that is gone before its retry is stored, or that nobody settled", () => {
    const tell = (isSafe: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      if (!isSafe) story.gone(copy, 1, "settled", delivery)
      story.store(1, { process: "a1", of: delivery, due: 1001 })
      if (isSafe) story.gone(copy, 1, "settled", delivery)
      story.answer(delivery, retry(1000))
    }
    expect(broken(tell(false))).toEqual(["books"])
    expect(broken(tell(true))).toEqual([])
    const unasked = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.gone(copy, 1, "settled", delivery)
    }
    expect(broken(unasked)).toEqual(["books"])
  })

  it("a redelivery that its process removes, unless the process decided so before, and has no answer yet", () => {
    const tell = (fate: "none" | "lost") => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.run(delivery)
      story.ask(delivery, ack)
      if (fate === "lost") story.answer(delivery, ack, "lost")
      story.back(delivery, "connection")
      story.gone(copy, 1, "settled", story.handOut(copy, 1, "a1"))
    }
    expect(broken(tell("none"))).not.toContain("books")
    expect(broken(tell("lost"))).toContain("books")
  })

  it("what is forgotten by a broker that must not, and purged by nobody", () => {
    const forget = (story: Story.Story) => story.gone(story.send(1), 1, "forgotten")
    expect(broken(forget)).toEqual(["books"])
    expect(broken(forget, Story.scenario({ kind: "nsq" }))).toEqual([])
    const expire = (wait: number) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.gone(copy, 1, "backstop", delivery)
      const letter = story.store(1, { queue: "undelivered", native: true })
      story.wait(wait)
      story.gone(letter, 1, "forgotten")
    }
    const policy = Story.scenario({
      rabbitmq: { version: "4.3.6", queueType: "quorum", topology: "auto", policyTtl: 20_000 }
    })
    expect(broken(expire(20_000), policy)).toEqual([])
    expect(broken(expire(19_999), policy)).toEqual(["books"])
    expect(broken(expire(20_000))).toEqual(["books"])
    const purge = (isWanted: boolean) => (story: Story.Story) => {
      const copy = story.send(1)
      if (isWanted) story.say({ _tag: "Operates", operation: 1, what: "Purge" })
      story.gone(copy, 1, "purged")
    }
    expect(broken(purge(false))).toEqual(["books"])
    expect(broken(purge(true))).toEqual([])
  })

  it("a dead letter that goes without a copy", () => {
    const tell = (isSafe: boolean) => (story: Story.Story) => {
      const { delivery } = first(story)
      story.run(delivery, { error: "permanent" })
      const taken = story.deliver(story.settle(delivery, deadLetter("permanent")), 1, "operator")
      if (isSafe) story.store(1, { process: "operator" })
      story.settle(taken, ack)
    }
    expect(broken(tell(false))).toEqual(["books"])
    expect(broken(tell(true))).toEqual([])
  })

  it("fewer dead letters than a process has removed of a message that two nsqd have", () => {
    const tell = (letters: number) => (story: Story.Story) => {
      story.start("a1", 2)
      const copies = [story.send(1), story.store(1)] as const
      story.wait(1)
      const taken = [story.deliver(copies[0], 1, "a1"), story.deliver(copies[1], 1, "a1")] as const
      for (const each of taken) story.run(each, { error: "permanent" })
      for (const each of taken) story.ask(each, deadLetter("permanent"))
      // No server shows which copy a letter replaces.
      for (let letter = 0; letter < letters; letter++) {
        story.store(1, { process: "a1", of: taken[0], queue: "work.dlq", reason: "permanent" })
        story.gone(copies[1 - letter]!, 1, "settled", taken[1 - letter])
      }
      if (letters < 2) story.gone(copies[0], 1, "settled", taken[0])
    }
    const world = Story.scenario({ kind: "nsq", version: { concurrency: 2 } })
    expect(broken(tell(2), world)).not.toContain("books")
    expect(broken(tell(0), world)).toContain("books")
  })

  it("a message that is left undelivered, unless its exchange was deleted and no process had the time to bind its queue", () => {
    const tell = (wait: number) => (story: Story.Story) => {
      story.start("a1")
      const copy = story.send(1)
      story.wait(wait)
      story.gone(copy, 1, "undelivered")
    }
    const server = { version: "4.3.6", queueType: "quorum", topology: "levels" } as const
    const world = Story.scenario({ rabbitmq: { ...server, deletedAt: 500 } })
    expect(broken(tell(1000), world)).not.toContain("books")
    expect(broken(tell(400), world)).toContain("books")
    expect(broken(tell(150_000), world)).toContain("books")
    expect(broken(tell(1000), Story.scenario({ rabbitmq: server }))).toContain("books")
  })

  it("what the backstop takes without a dead letter", () => {
    const tell = (isSafe: boolean) => (story: Story.Story) => {
      story.gone(first(story).copy, 1, "backstop")
      if (isSafe) story.store(1, { native: true, queue: "work.dlq" })
    }
    expect(broken(tell(false))).toEqual(["books"])
    expect(broken(tell(true))).toEqual([])
  })
})

it("copies: one that is stored elsewhere, or says another reason", () => {
  const tell = (queue: string, reason: string) => (story: Story.Story) => {
    const { copy, delivery } = first(story)
    story.run(delivery, { error: "permanent" })
    story.ask(delivery, deadLetter("permanent"))
    story.store(1, { process: "a1", of: delivery, queue, reason })
    story.gone(copy, 1, "settled", delivery)
  }
  expect(broken(tell("elsewhere", "permanent"))).toEqual(["copies"])
  expect(broken(tell("work.dlq", "too-old"))).toEqual(["copies"])
  expect(broken(tell("work.dlq", "permanent"))).toEqual([])
})

describe("precedence", () => {
  type Ending = Parameters<Story.Story["run"]>[1]

  /** Whether this settlement follows from a run that ends so. */
  const follows = (settlement: Asked, ending: Ending, attempts = 1, world?: Scenario) => {
    const tell = (story: Story.Story) => {
      const { delivery } = first(story)
      story.run({ key: 1, delivery, attempts }, ending)
      story.ask(delivery, settlement)
    }
    return !broken(tell, world).includes("precedence")
  }
  const drop = (reason: string) => Story.asked("Drop", { reason })

  it("outcomes and errors", () => {
    expect(follows(ack, {})).toBe(true)
    expect(follows(retry(1000), {})).toBe(false)
    expect(follows(retry(1000), { error: "error" })).toBe(true)
    expect(follows(retry(500), { error: "error" })).toBe(false)
    expect(follows(ack, { error: "error" })).toBe(false)
    expect(follows(retry(5000), { error: "error" }, 2)).toBe(true)
    expect(follows(retry(7000), { error: "retryAfter" })).toBe(true)
    expect(follows(retry(1000), { error: "retryAfter" })).toBe(false)
    expect(follows(deadLetter("permanent"), { error: "permanent" })).toBe(true)
    expect(follows(retry(1000), { error: "permanent" })).toBe(false)
    expect(follows(drop("dropped"), { error: "drop" })).toBe(true)
    expect(follows(drop("dropped"), { error: "error" })).toBe(false)
  })

  it("the last attempt", () => {
    expect(follows(deadLetter("retries-exhausted"), { error: "error" }, 3)).toBe(true)
    expect(follows(retry(5000), { error: "error" }, 3)).toBe(false)
    expect(follows(deadLetter("retries-exhausted"), { error: "error" }, 2)).toBe(false)
    expect(follows(deadLetter("retries-exhausted"), { calls: [call("retry", 1, 5)] }, 3)).toBe(true)
    const discards = Story.scenario({ version: { deadLetter: undefined } })
    expect(follows(drop("retries-exhausted"), { error: "error" }, 3, discards)).toBe(true)
    expect(follows(deadLetter("retries-exhausted"), { error: "error" }, 3, discards)).toBe(false)
  })

  it("maxAge", () => {
    const aged = Story.scenario({ version: { maxAge: 500 } })
    expect(follows(deadLetter("too-old"), { error: "error" }, 1, aged)).toBe(true)
    expect(follows(deadLetter("too-old"), { error: "error" })).toBe(false)
    expect(follows(retry(1000), { error: "error", takes: 2000 }, 1, aged)).toBe(false)
    const tell = (story: Story.Story) => {
      const { delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.wait(9000)
      story.ask(delivery, retry(1000))
    }
    expect(broken(tell, Story.scenario({ version: { maxAge: 5000 } }))).toEqual([])
  })

  it("maxAge, of a message whose age began when it came to a process with a clock of its own", () => {
    const late = { ...Story.process("a"), clock: { offset: -7_200_000, speed: 1, jumps: [] } }
    const ends = (by: "ours" | "foreign") => {
      const sendings = [{ ...Story.sending(1), by }]
      const world = Story.scenario({ sendings, processes: [late], version: { maxAge: 500, backoff: [] } })
      return follows(deadLetter("too-old"), { error: "error", takes: 2000 }, 1, world)
    }
    expect([ends("foreign"), ends("ours")]).toEqual([true, false])
  })

  it("maxAge, of a message whose timestamp has seconds", () => {
    const ends = (by: "ours" | "foreign", kind: "rabbitmq" | "nsq") => {
      const sendings = [{ ...Story.sending(1), by }]
      const world = Story.scenario({ kind, sendings, version: { maxAge: 1500, backoff: [] } })
      return follows(deadLetter("too-old"), { error: "error", takes: 800 }, 1, world)
    }
    expect([ends("foreign", "rabbitmq"), ends("foreign", "nsq"), ends("ours", "rabbitmq")]).toEqual([
      true,
      false,
      false
    ])
  })

  it("a handler whose time is over", () => {
    expect(follows(retry(1000), { how: "interrupted", takes: 10_000 })).toBe(true)
    // Nothing waits for a promise; an Effect that cannot be interrupted has an end of its own.
    const promises = Story.scenario({ version: { promise: true } })
    expect(follows(ack, { takes: 10_002 }, 1, promises)).toBe(false)
    expect(follows(ack, { takes: 10_002 })).toBe(true)
    expect(follows(ack, { takes: 9999 })).toBe(true)
    expect(follows(release, { how: "interrupted", takes: 10_000 })).toBe(false)
  })

  it("what waits for the end of its batch, and what does not", () => {
    const asks = (settlement: Asked, ...calls: ReadonlyArray<ReturnType<typeof call>>) =>
      broken((story) => {
        const { delivery } = first(story)
        story.calls(story.begin(delivery), ...calls)
        story.ask(delivery, settlement)
      })
    expect(asks(ack, call("ack", 1))).toEqual([])
    expect(asks(retry(7), call("retry", 1, 7))).toEqual([])
    expect(asks(retry(1000), call("retry", 1))).toEqual(["precedence"])
    expect(asks(retry(9), call("retryAll", undefined, 9))).toEqual(["precedence"])
    expect(asks(ack)).toEqual(["precedence"])
  })

  it("immediate retries run before a failure counts, and no more of them than allowed", () => {
    const world = Story.scenario({ version: { immediate: 1 } })
    const tell = (runs: number) => (story: Story.Story) => {
      const { delivery } = first(story)
      for (let run = 0; run < runs; run++) story.run(delivery, { error: "error" })
      story.settle(delivery, retry(1000))
    }
    expect(broken(tell(1), world)).toEqual(["precedence"])
    expect(broken(tell(2), world)).toEqual([])
    expect(broken(tell(3), world)).toEqual(["attempts"])
    const answered = (fate: "lost" | "transient") => (story: Story.Story) => {
      const { delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.answer(delivery, retry(1000), fate)
    }
    expect(broken(answered("lost"), world)).toEqual([])
    expect(broken(answered("transient"), world)).toEqual(["precedence"])
  })

  it("an immediate retry has no room if another run took it meanwhile", () => {
    const tell = (max: number) =>
      broken(
        (story) => {
          const { delivery } = first(story, 2)
          story.run(delivery, { error: "error" })
          story.run(story.deliver(story.send(2), 2, "a1"))
          story.settle(delivery, retry(1000))
        },
        Story.scenario({ version: { immediate: 1, concurrency: 2, rateLimit: { max, per: 10_000 } } })
      )
    expect(tell(2)).toEqual([])
    expect(tell(3)).toContain("precedence")
  })

  it("no other run waits for a delivery that is lost, or counts for what was decided on before it", () => {
    const world = Story.scenario({ version: { immediate: 1, batch: { size: 2, wait: 0 } } })
    const lost = (story: Story.Story, one: number, two: number) => {
      const run = story.begin(one, two)
      story.say({ _tag: "Reconnected", process: "a1", gone: [one] })
      story.ended(run, { error: "error" })
    }
    const decided = (story: Story.Story, one: number, two: number) => {
      const run = story.begin(one, two)
      story.calls(run, call("retry", 1))
      story.ended(run, { error: "error" })
      story.run(two, { error: "retryAfter" })
    }
    const decidedAgain = (story: Story.Story, one: number, two: number) => {
      const run = story.begin(one, two)
      story.calls(run, call("retry", 1, 3000))
      story.ended(run, { error: "error" })
      story.ended(story.begin(one, two), { error: "error" })
    }
    const asks = (key: 1 | 2, delay: number, after: typeof lost) =>
      broken((story) => {
        story.start("a1", 2)
        const one = story.deliver(story.send(1), 1, "a1")
        const two = story.deliver(story.send(2), 2, "a1")
        after(story, one, two)
        story.ask(key === 1 ? one : two, retry(delay))
      }, world)
    expect(asks(1, 1000, lost)).toEqual([])
    expect(asks(2, 1000, lost)).toEqual(["precedence"])
    expect(asks(1, 1000, decidedAgain)).toEqual(["precedence"])
    expect(asks(1, 1000, decided)).toEqual([])
    expect(asks(1, 7000, decided)).toEqual(["precedence"])
  })

  it("a drain that interrupts the handler gives its message back", () => {
    const tell = (isDraining: boolean) => (story: Story.Story) => {
      const { delivery } = first(story)
      const run = story.begin(delivery)
      if (isDraining) story.drain("a1")
      story.wait(1000)
      story.ended(run, { how: "interrupted" })
      story.settle(delivery, release)
    }
    expect(broken(tell(true))).toEqual([])
    expect(broken(tell(false))).toEqual(["precedence"])
  })

  it("calls after the end of a drain come too late", () => {
    const tell = (until: number) => (story: Story.Story) => {
      const { delivery } = first(story)
      const run = story.begin(delivery)
      story.drain("a1")
      story.wait(until)
      story.calls(run, call("ack", 1))
      story.ended(run)
      story.ask(delivery, release)
    }
    const world = Story.scenario({ version: { drainTimeout: 1000, promise: true } })
    expect(broken(tell(1010), world)).not.toContain("precedence")
    expect(broken(tell(900), world)).toContain("precedence")
  })

  it("a redelivery waits as the retry does that another one in between was to wait for", () => {
    const tell = (isBetween: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      if (isBetween) story.deliver(copy, 1, "a1", 2)
      story.back(delivery, "asked", 1000)
      story.answer(delivery, retry(1000))
      story.ask(story.deliver(copy, 1, "a1", 3), retry(1000))
    }
    const world = Story.scenario({ kind: "sqs" })
    expect(broken(tell(true), world)).not.toContain("precedence")
    expect(broken(tell(false), world)).toContain("precedence")
  })

  it("without a run: given back, or undecodable, and nothing else", () => {
    const asks = (settlement: Asked, body: "good" | "undecodable") =>
      broken(
        (story) => story.ask(first(story).delivery, settlement),
        Story.scenario({ sendings: [{ ...Story.sending(1), body }] })
      )
    expect(asks(deadLetter("undecodable"), "undecodable")).toEqual([])
    expect(asks(deadLetter("undecodable"), "good")).toEqual(["precedence"])
    expect(asks(release, "good")).toEqual([])
    expect(asks(ack, "good")).toEqual(["precedence"])
  })
})

describe("repeated, and again", () => {
  /** A settlement that is lost with its connection; answers the next delivery of the copy, 400 ms later. */
  const lost = (story: Story.Story, settlement: Asked, error?: string, process = "a1") => {
    const { copy, delivery } = first(story, 2)
    story.run(delivery, { error })
    story.ask(delivery, settlement)
    story.say({ _tag: "Reconnected", process: "a1", gone: [delivery] })
    story.answer(delivery, settlement, "lost")
    story.wait(400)
    story.back(delivery, "connection")
    if (process !== "a1") story.start(process)
    return story.deliver(copy, 1, process)
  }

  it("an ack that was lost is asked again, without a run", () => {
    expect(broken((story) => void story.settle(lost(story, ack), ack))).toEqual([])
    expect(broken((story) => void story.settle(lost(story, ack), release))).toEqual(["repeated"])
    expect(broken((story) => story.run(lost(story, ack)))).toContain("again")
  })

  it("another process knows nothing of it, nor does this one of a message that nothing names", () => {
    expect(broken((story) => story.run(lost(story, ack, undefined, "b1")))).toEqual([])
    const sendings = [{ ...Story.sending(1), by: "foreign" as const }]
    const tell = (story: Story.Story) => story.run(lost(story, ack))
    expect(broken(tell, Story.scenario({ sendings }))).toEqual([])
    expect(broken(tell, Story.scenario({ sendings, kind: "sqs" }))).toContain("again")
  })

  it("an original whose copy is stored may be acked instead", () => {
    const tell = (isStored: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      story.run(delivery, { error: "permanent" })
      story.ask(delivery, deadLetter("permanent"))
      if (isStored) story.store(1, { process: "a1", of: delivery, queue: "work.dlq", reason: "permanent" })
      story.answer(delivery, deadLetter("permanent"), "unknown")
      story.back(delivery, "connection")
      story.settle(story.deliver(copy, 1, "a1"), ack)
    }
    expect(broken(tell(true))).toEqual([])
    expect(broken(tell(false))).toEqual(["repeated"])
  })

  it("a message that is back before its retry is answered is another attempt", () => {
    const tell = (fate: "unknown" | undefined) => (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      story.run(delivery, { calls: [call("retry", 1, 0)] })
      story.ask(delivery, retry(0))
      story.back(delivery, "asked")
      const next = story.deliver(copy, 1, "a1")
      story.answer(delivery, retry(0), fate)
      story.settle(next, release)
    }
    expect(broken(tell(undefined))).toEqual([])
    expect(broken(tell("unknown"))).toEqual(["repeated"])
  })

  it("one that came twice before its retry was answered is sent back twice", () => {
    const asks = (came: "before" | "after", settlement: Asked) => {
      const tell = (story: Story.Story) => {
        const { copy, delivery } = first(story, 3)
        story.run(delivery, { error: "error" })
        if (came === "after") story.ask(delivery, retry(1000))
        const twin = story.deliver(copy, 1, "a1")
        if (came === "before") story.ask(delivery, retry(1000))
        story.wait(400)
        story.answer(delivery, retry(1000))
        story.ask(twin, settlement)
        // One that comes while it is sent back goes back with it.
        const third = story.deliver(copy, 1, "a1")
        story.answer(twin, settlement, "unknown")
        story.settle(third, settlement)
      }
      return broken(tell, Story.scenario({ kind: "sqs" }))
    }
    expect(asks("before", retry(600))).toEqual([])
    expect(asks("before", ack)).toEqual(["precedence", "repeated"])
    expect(asks("after", retry(600))).toEqual([])
    expect(asks("after", retry(500))).toEqual(["precedence"])
    expect(asks("after", ack)).toEqual(["precedence"])
  })

  it("a retry that was lost waits for the rest of its delay", () => {
    const asks = (delay: number) =>
      broken((story) => void story.settle(lost(story, retry(1000), "error"), retry(delay)))
    expect(asks(600)).toEqual([])
    expect(asks(500)).toEqual(["repeated"])
    expect(broken((story) => story.run(lost(story, retry(1000), "error")))).toEqual(["early"])
  })

  it("a retry that was lost is not that of two messages with one name", () => {
    const tell = (isDoubled: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      if (isDoubled) story.store(1, { process: "a1", of: delivery, replaces: true })
      story.answer(delivery, retry(1000), "lost")
      story.back(delivery, "connection")
      story.run(story.deliver(copy, 1, "a1", 2))
    }
    expect(broken(tell(false))).toContain("early")
    expect(broken(tell(true))).not.toContain("early")
  })

  it("a redelivery that comes when the retry is due may be one too many", () => {
    const world = Story.scenario({ kind: "sqs", version: { maxDeliveries: 1 } })
    const tell = (wait: number) => (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.wait(wait)
      story.back(delivery, "lease")
      story.ask(story.deliver(copy, 1, "a1", 2), deadLetter("too-many-deliveries"))
    }
    expect(broken(tell(900), world)).toEqual(["repeated"])
    expect(broken(tell(1000), world)).toEqual([])
  })

  it("an earlier delivery may go back late, and nothing else of it", () => {
    const tell = (late: Asked) => (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      const run = story.begin(delivery)
      story.calls(run, call("retry", 1, 0))
      story.back(delivery, "lease")
      const again = story.deliver(copy, 1, "a1", 2)
      story.ended(run)
      story.run(again)
      story.ask(again, ack)
      story.ask(delivery, late)
    }
    const world = Story.scenario({ kind: "sqs" })
    expect(broken(tell(retry(0)), world)).not.toContain("repeated")
    expect(broken(tell(deadLetter("permanent")), world)).toContain("repeated")
  })

  it("no run after a success, though nothing was asked yet", () => {
    const tell = (error: string | undefined) => (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      story.run(delivery, { error })
      story.back(delivery, "connection")
      story.run(story.deliver(copy, 1, "a1"))
    }
    expect(broken(tell(undefined))).toEqual(["again"])
    expect(broken(tell("error"))).toEqual([])
  })

  it("no run of an original whose copy this process has stored", () => {
    const tell = (process: string, fate?: "lost") => (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      story.start("b1")
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.store(1, { process: "a1", of: delivery, due: 1001 })
      story.answer(delivery, retry(1000), fate)
      story.back(delivery, "connection")
      story.wait(1000)
      story.run(story.deliver(copy, 1, process))
    }
    expect(broken(tell("a1"))).toEqual(["again"])
    expect(broken(tell("b1"))).toEqual([])
    // Its confirmation was lost with the original. With leases, the client may know of the copy and not of its original.
    const retried = (kind: "rabbitmq" | "nsq" | "sqs") =>
      broken((story) => {
        tell("a1", "lost")(story)
      }, Story.scenario({ kind }))
    expect([retried("rabbitmq"), retried("nsq"), retried("sqs")]).toEqual([[], [], ["again"]])
  })

  it("a run of an original whose copy is stored after the answer: that was of something else", () => {
    const tell = (isLate: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      const store = () => story.store(1, { process: "a1", of: delivery, due: 1001 })
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      if (!isLate) store()
      story.answer(delivery, retry(1000))
      if (isLate) store()
      story.back(delivery, "connection")
      story.wait(1000)
      story.run(story.deliver(copy, 1, "a1"))
    }
    const world = Story.scenario({ kind: "nsq" })
    expect(broken(tell(false), world)).toEqual(["again"])
    expect(broken(tell(true), world)).toEqual([])
  })
})

it("double run: two handlers for one copy in one process, unless the first one's time is over", () => {
  const tell = (wait: number, process: string) => (story: Story.Story) => {
    const { copy, delivery } = first(story, 2)
    story.start("b1")
    story.begin(delivery)
    story.wait(wait)
    story.begin(story.deliver(copy, 1, process))
  }
  const world = Story.scenario({ version: { concurrency: 2, promise: true } })
  expect(broken(tell(9999, "a1"), world)).toContain("double run")
  expect(broken(tell(10_000, "a1"), world)).toEqual([])
  expect(broken(tell(0, "b1"), world)).toEqual([])
})

it("repeated: a dead letter that failed is returned if the budget is spent, which ends the process", () => {
  const tell = (because: "budget" | undefined) =>
    broken(
      (story) => {
        const { delivery } = first(story)
        story.run(delivery, { error: "permanent" })
        story.ask(delivery, deadLetter("permanent"))
        story.answer(delivery, deadLetter("permanent"), "unknown")
        story.settle(delivery, release)
        story.say({ _tag: "Draining", process: "a1", ...(because === undefined ? {} : { because }) })
      },
      Story.scenario({ version: { budget: { max: 1, perSuccess: 0.1 } } })
    )
  expect(tell("budget")).not.toContain("repeated")
  expect(tell(undefined)).toContain("repeated")
})

it("repeated: a redelivery that waited for an earlier message of its group is returned when that is lost", () => {
  const tell = (groups: readonly [string, string], how: "lapsed" | "answered" | "held") => {
    const sendings = groups.map((group, index) => ({ ...Story.sending(index + 1), group }))
    return broken(
      (story) => {
        story.start("a1", 2)
        const copies = [story.send(1), story.send(2)]
        const acked = copies.map((copy, index) => story.deliver(copy, index + 1, "a1"))
        for (const each of acked) {
          story.run(each)
          story.ask(each, ack)
          story.answer(each, ack, "transient")
          story.say({ _tag: "Lapsed", process: "a1", delivery: each })
          story.back(each, "lease")
        }
        const [earlier, later] = copies.map((copy, index) => story.deliver(copy, index + 1, "a1")) as [number, number]
        if (how === "lapsed") story.say({ _tag: "Lapsed", process: "a1", delivery: earlier })
        if (how === "answered") {
          story.ask(earlier, ack)
          story.answer(earlier, ack, "lost")
        }
        story.settle(later, release)
      },
      Story.scenario({ kind: "sqs", lease: 5000, fifo: "block", sendings, version: { concurrency: 2 } })
    )
  }
  expect(tell(["g", "g"], "lapsed")).not.toContain("repeated")
  expect(tell(["g", "g"], "answered")).not.toContain("repeated")
  expect(tell(["g", "g"], "held")).toContain("repeated")
  expect(tell(["g", "h"], "lapsed")).toContain("repeated")
})

it("repeated: a redelivery is also returned when a later message of its group is lost, which had arrived before it", () => {
  const tell = (groups: readonly [string, string]) => {
    const sendings = groups.map((group, index) => ({ ...Story.sending(index + 1), group }))
    return broken(
      (story) => {
        story.start("a1", 2)
        const copies = [story.send(1), story.send(2)]
        const [one, two] = copies.map((copy, index) => story.deliver(copy, index + 1, "a1")) as [number, number]
        for (const each of [one, two]) {
          story.run(each)
          story.ask(each, ack)
          story.answer(each, ack, "transient")
        }
        story.say({ _tag: "Lapsed", process: "a1", delivery: one })
        story.back(one, "lease")
        const again = story.deliver(copies[0]!, 1, "a1")
        story.say({ _tag: "Lapsed", process: "a1", delivery: two })
        story.settle(again, release)
      },
      Story.scenario({ kind: "sqs", lease: 5000, fifo: "block", sendings, version: { concurrency: 2 } })
    )
  }
  expect(tell(["g", "g"])).not.toContain("repeated")
  expect(tell(["g", "h"])).toContain("repeated")
})

it("budget: a success after the stop leaves room for the dead letter of a handler that still ran", () => {
  const tell = (succeeds: boolean) => (story: Story.Story) => {
    story.start("a1", 3)
    const [one, two, three] = [1, 2, 3].map((key) => story.deliver(story.send(key), key, "a1"))
    for (const each of [one!, two!, three!]) story.begin(each)
    story.settle(one!, deadLetter("permanent"))
    story.say({ _tag: "Draining", process: "a1", because: "budget" })
    if (succeeds) story.settle(two!, ack)
    story.settle(three!, deadLetter("permanent"))
  }
  const world = Story.scenario({ version: { concurrency: 3, budget: { max: 1, perSuccess: 1 } } })
  expect(broken(tell(false), world)).toContain("budget")
  expect(broken(tell(true), world)).not.toContain("budget")
})

it("budget: a dead letter that failed may be decided again, and wait for an extension of its lease", () => {
  const tell = (kind: "sqs" | "rabbitmq", wait: number) =>
    broken(
      (story) => {
        const { delivery } = first(story)
        story.run(delivery, { error: "permanent" })
        story.ask(delivery, deadLetter("permanent"))
        story.answer(delivery, deadLetter("permanent"), "unknown")
        story.wait(wait)
        story.say({ _tag: "Draining", process: "a1", because: "budget" })
      },
      Story.scenario({ kind, lease: kind === "sqs" ? 5000 : 0, version: { budget: { max: 1, perSuccess: 0.5 } } })
    )
  expect(tell("sqs", 1000)).not.toContain("budget")
  expect(tell("sqs", 999)).toContain("budget")
  expect(tell("rabbitmq", 1000)).toContain("budget")
})

it("budget: an ack that only removes a redelivery of a settled message is no success", () => {
  const tell = (isRun: boolean) => (story: Story.Story) => {
    const { copy, delivery } = first(story)
    story.run(delivery, { error: "permanent" })
    story.ask(delivery, deadLetter("permanent"))
    story.back(delivery, "lease")
    const redelivery = story.deliver(copy, 1, "a1", 2)
    story.store(1, { process: "a1", of: delivery, queue: "work.dlq", reason: "permanent" })
    story.answer(delivery, deadLetter("permanent"))
    if (isRun) story.run(redelivery)
    story.ask(redelivery, ack)
    story.gone(copy, 1, "settled", redelivery)
    story.answer(redelivery, ack)
    story.say({ _tag: "Draining", process: "a1", because: "budget" })
  }
  const world = Story.scenario({ kind: "sqs", lease: 5000, version: { budget: { max: 1, perSuccess: 1 } } })
  expect(broken(tell(false), world)).not.toContain("budget")
  expect(broken(tell(true), world)).toContain("budget")
})

describe("early", () => {
  const sent = (earliest: number, at: number) => (story: Story.Story) => {
    story.start("a1")
    const copy = story.send(1, earliest)
    story.wait(at)
    story.begin(story.deliver(copy, 1, "a1"))
  }
  const clocked = (offset: number) =>
    Story.scenario({ kind: "sqs", processes: [{ ...Story.process("a"), clock: { offset, speed: 1, jumps: [] } }] })

  it("before the time of a send or a retry", () => {
    expect(broken(sent(500, 400))).toEqual(["early"])
    expect(broken(sent(500, 500))).toEqual([])
    const retried = (wait: number) => (story: Story.Story) => {
      const { delivery } = first(story)
      story.run(delivery, { error: "error" })
      const copy = story.settle(delivery, retry(1000))
      story.wait(wait)
      story.begin(story.deliver(copy, 1, "a1", 2))
    }
    expect(broken(retried(900))).toEqual(["early"])
    expect(broken(retried(1000))).toEqual([])
  })

  it("as far as clocks agree", () => {
    expect(broken(sent(500, 400), clocked(100))).toEqual([])
    expect(broken(sent(500, 300), clocked(100))).toEqual(["early"])
    expect(broken(sent(500, 400), clocked(-100))).toEqual(["early"])
  })

  it("as a fast clock has counted the time until RabbitMQ stored the retry, which keeps the rest", () => {
    const tell = (wait: number) => (story: Story.Story) => {
      const { delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(5000))
      story.wait(3000)
      const copy = story.store(1, { process: "a1", of: delivery, due: 4700 })
      story.answer(delivery, retry(5000))
      story.wait(wait)
      story.begin(story.deliver(copy, 1, "b1", 2))
    }
    const processes = [{ ...Story.process("a"), clock: { offset: 0, speed: 1.1, jumps: [] } }, Story.process("b")]
    const world = (topology: "levels" | "waitLoop") =>
      Story.scenario({ processes, rabbitmq: { version: "4.3.6", queueType: "quorum", topology } })
    expect(broken(tell(1700), world("levels"))).not.toContain("early")
    expect(broken(tell(1600), world("levels"))).toContain("early")
    expect(broken(tell(1300), world("waitLoop"))).toContain("early")
  })

  it("a hop keeps the time of its send", () => {
    const tell = (wait: number) => (story: Story.Story) => {
      story.start("a1")
      const copy = story.send(1, 500)
      const delivery = story.deliver(copy, 1, "a1")
      story.ask(delivery, Story.asked("Release", { delay: 500 }))
      const hop = story.store(1, { process: "a1", of: delivery, due: 100 })
      story.gone(copy, 1, "settled", delivery)
      story.answer(delivery, release)
      story.wait(wait)
      story.begin(story.deliver(hop, 1, "a1"))
    }
    expect(broken(tell(100))).toEqual(["early"])
    expect(broken(tell(500))).toEqual([])
  })

  it("a copy that comes late is due when it was first asked, unless that is known to have failed", () => {
    const tell = (fate: "unknown" | "transient") => (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.wait(400)
      story.answer(delivery, retry(1000), fate)
      story.ask(delivery, retry(1000))
      const late = story.store(1, { process: "a1", of: delivery, due: 1001 })
      story.gone(copy, 1, "settled", delivery)
      story.answer(delivery, retry(1000))
      story.wait(600)
      story.begin(story.deliver(late, 1, "a1", 2))
    }
    expect(broken(tell("unknown"))).toEqual([])
    expect(broken(tell("transient"))).toEqual(["early"])
  })

  it("a replacement of the message is due before its retry", () => {
    const tell = (replaced: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.say({ _tag: "Back", copy, key: 1, delivery, due: 1, why: "asked", replaced })
      story.begin(story.deliver(copy, 1, "a1", 2))
    }
    expect(broken(tell(false))).toContain("early")
    expect(broken(tell(true))).not.toContain("early")
    const store = (replaces: boolean) => (story: Story.Story) => {
      const { delivery } = first(story, 2)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.begin(story.deliver(story.store(1, { process: "a1", of: delivery, replaces }), 1, "a1", 2))
    }
    expect(broken(store(false))).toContain("early")
    expect(broken(store(true))).not.toContain("early")
  })

  it("a client that ends returns at once what it gave up in the middle of a copy, but nothing that it had lost", () => {
    const tell = (drains: boolean, isLost: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.start("b1")
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      if (drains) story.drain("a1")
      if (isLost) story.say({ _tag: "Reconnected", process: "a1", gone: [delivery] })
      story.answer(delivery, retry(1000), "lost")
      story.back(delivery, "asked")
      story.begin(story.deliver(copy, 1, "b1", 2))
    }
    const world = Story.scenario({ kind: "nsq", lease: 30_000 })
    expect(broken(tell(true, false), world)).not.toContain("early")
    expect(broken(tell(false, false), world)).toContain("early")
    expect(broken(tell(true, true), world)).toContain("early")
  })

  it("a lease that was renewed after a retry without an answer ends before the retry is due", () => {
    const tell = (fate: "unknown" | undefined) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.start("b1")
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.back(delivery, "asked", 1000)
      story.answer(delivery, retry(1000), fate)
      story.wait(500)
      story.back(delivery, "lease")
      story.begin(story.deliver(copy, 1, "b1", 2))
    }
    const world = Story.scenario({ kind: "sqs" })
    expect(broken(tell("unknown"), world)).not.toContain("early")
    expect(broken(tell(undefined), world)).toContain("early")
  })

  it("a failed extension may still arrive on SQS, and then replaces the delay of a retry", () => {
    const tell = (call: string) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.start("b1")
      story.run(delivery, { error: "error" })
      story.say({ _tag: "Fault", site: `cut a1 ${call} work 1`, kind: "cut" })
      story.ask(delivery, retry(1000))
      story.back(delivery, "asked", 1000)
      story.answer(delivery, retry(1000))
      story.wait(500)
      story.back(delivery, "lease")
      story.begin(story.deliver(copy, 1, "b1", 2))
    }
    const world = Story.scenario({ kind: "sqs" })
    expect(broken(tell("hide"), world)).not.toContain("early")
    expect(broken(tell("send"), world)).toContain("early")
  })

  it("a delivery that the broker makes during the delay of a retry replaces the delay by its lease", () => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.start("b1")
      story.start("c1")
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.back(delivery, "asked", 1000)
      story.answer(delivery, retry(1000))
      story.wait(500)
      const echo = story.deliver(copy, 1, "b1", 2)
      story.back(echo, "lease")
      story.begin(story.deliver(copy, 1, "c1", 3))
    }
    expect(broken(tell, Story.scenario({ kind: "sqs" }))).not.toContain("early")
    expect(broken(tell, Story.scenario({ kind: "nsq" }))).toContain("early")
  })

  it("an echo that is returned ends the delay, and a delivery of before does not", () => {
    const tell = (isEcho: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.start("b1")
      story.start("c1")
      const before = isEcho ? 0 : story.deliver(copy, 1, "b1", 2)
      story.wait(1)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.back(delivery, "asked", 1000)
      story.answer(delivery, retry(1000))
      story.wait(500)
      const echo = isEcho ? story.deliver(copy, 1, "b1", 2) : before
      story.settle(echo, release)
      story.begin(story.deliver(copy, 1, "c1", 3))
    }
    const world = Story.scenario({ kind: "sqs" })
    expect(broken(tell(true), world)).not.toContain("early")
    expect(broken(tell(false), world)).toContain("early")
  })

  it("on NSQ, a process that returns a message before its time writes that by its clock", () => {
    const tell = (isReturned: boolean) => (story: Story.Story) => {
      const { delivery } = first(story)
      story.start("b1")
      story.run(delivery, { error: "error" })
      let copy = story.settle(delivery, retry(10_000))
      story.wait(100)
      if (isReturned) {
        const early = story.deliver(copy, 1, "b1", 2)
        story.ask(early, release)
        const hop = story.store(1, { process: "b1", of: early, due: 10_000 })
        story.gone(copy, 1, "settled", early)
        story.answer(early, release)
        copy = hop
      }
      story.begin(story.deliver(copy, 1, "a1", 3))
    }
    const clock = { offset: -60_000, speed: 1, jumps: [] }
    const world = Story.scenario({ kind: "nsq", processes: [Story.process("a"), { ...Story.process("b"), clock }] })
    expect(broken(tell(true), world)).not.toContain("early")
    expect(broken(tell(false), world)).toContain("early")
  })

  it("a dead letter is due when an operator sends it back", () => {
    const tell = (process: string) => (story: Story.Story) => {
      story.start("a1")
      story.send(1, 500)
      story.begin(story.deliver(story.store(1, { process }), 1, "a1"))
    }
    expect(broken(tell("operator"))).not.toContain("early")
    expect(broken(tell("a1"))).toContain("early")
  })

  it("a slow clock cannot tell that the time is over which the broker has waited for", () => {
    const clock = { offset: 0, speed: 0.9, jumps: [] }
    const slow = Story.scenario({ kind: "sqs", processes: [{ ...Story.process("a"), clock }] })
    const tell = (wait: number) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.back(delivery, "asked")
      story.answer(delivery, retry(1000), "lost")
      story.wait(wait)
      story.begin(story.deliver(copy, 1, "a1", 2))
    }
    expect(broken(tell(1000), slow)).not.toContain("early")
    expect(broken(tell(900), slow)).toContain("early")
  })
})

describe("late", () => {
  const sent = (story: Story.Story) => {
    story.start("a1")
    return story.send(1, 500)
  }

  it("a handler that begins long after its message is due, though nothing is in its way", () => {
    const tell =
      (wait: number, trouble: (story: Story.Story) => void = () => {}) =>
      (story: Story.Story) => {
        const copy = sent(story)
        trouble(story)
        story.wait(wait)
        story.begin(story.deliver(copy, 1, "a1"))
      }
    expect(broken(tell(10_551))).toEqual(["late"])
    expect(broken(tell(10_550))).toEqual([])
    const fault = (story: Story.Story) => story.say({ _tag: "Fault", site: "cut a1 consume work 1", kind: "cut" })
    expect(broken(tell(10_551, fault))).toEqual([])
    expect(broken(tell(600_000 + 10_051, fault))).toEqual(["late"])
  })

  it("but another handler may be at work, and a batch may be gathered", () => {
    const busy = (takes: number) => (story: Story.Story) => {
      const copy = sent(story)
      const other = story.deliver(story.send(2), 2, "a1")
      story.run(other, { takes })
      story.settle(other, ack)
      story.wait(15_000 - takes)
      story.begin(story.deliver(copy, 1, "a1"))
    }
    expect(broken(busy(4000))).toEqual(["late"])
    expect(broken(busy(6000))).toEqual([])
    const gathered = (wait: number) => (story: Story.Story) => {
      const delivery = story.deliver(sent(story), 1, "a1")
      story.wait(wait)
      story.begin(delivery)
    }
    const world = Story.scenario({ version: { batch: { size: 2, wait: 2000 } } })
    expect(broken(gathered(12_550), world)).toEqual([])
    expect(broken(gathered(12_551), world)).toEqual(["late"])
  })

  it("a message that goes back for longer than until it is due, as clocks have it", () => {
    const tell = (delay: number) => (story: Story.Story) => {
      story.ask(story.deliver(sent(story), 1, "a1"), Story.asked("Release", { delay }))
    }
    expect(broken(tell(10_500))).toEqual([])
    expect(broken(tell(10_501))).toEqual(["late"])
    const clock = { offset: -1000, speed: 1, jumps: [] }
    const world = Story.scenario({ processes: [{ ...Story.process("a"), clock }] })
    expect(broken(tell(11_500), world)).toEqual([])
    expect(broken(tell(11_501), world)).toEqual(["late"])
  })

  it("a returned message is hidden on SQS while a poll may run without credit, and no longer", () => {
    const tell =
      (hidden: number, isReturned = true) =>
      (story: Story.Story) => {
        story.start("a1")
        const copy = story.send(1)
        const delivery = story.deliver(copy, 1, "a1")
        if (isReturned) story.ask(delivery, release)
        story.back(delivery, "asked", hidden)
        if (isReturned) story.answer(delivery, release)
        story.wait(hidden + 9000)
        story.begin(story.deliver(copy, 1, "a1"))
      }
    const world = Story.scenario({ kind: "sqs", lease: 5000 })
    expect(broken(tell(21_000), world)).toEqual([])
    expect(broken(tell(25_000), world)).toEqual(["late"])
    expect(broken(tell(21_000, false), world)).toEqual(["late"])
    expect(broken(tell(21_000), Story.scenario())).toEqual(["late"])
  })

  it("a slow clock counts on NSQ where a process could not ask for the time", () => {
    const clock = { offset: -7_200_000, speed: 1, jumps: [] }
    const world = Story.scenario({ kind: "nsq", lease: 30_000, processes: [{ ...Story.process("a"), clock }] })
    const tell = (site: string) => (story: Story.Story) => {
      const copy = sent(story)
      story.say({ _tag: "Fault", site, kind: "cut" })
      story.ask(story.deliver(copy, 1, "a1"), Story.asked("Release", { delay: 20_000 }))
    }
    expect(broken(tell("cut b1 ask info nsqd1 1"), world)).toEqual(["late"])
    expect(broken(tell("cut a1 ask info nsqd1 1"), world)).toEqual([])
  })

  it("a slow clock counts on NSQ if a fast one has returned the message before its time", () => {
    const clocked = (name: string, offset: number) => ({
      ...Story.process(name),
      clock: { offset, speed: 1, jumps: [] }
    })
    const processes = [clocked("a", 3_600_000), clocked("b", -3_600_000)]
    const world = Story.scenario({ kind: "nsq", lease: 30_000, processes, version: { backoff: [0] } })
    const tell = (earliest: number) => (story: Story.Story) => {
      story.start("a1")
      story.start("b1")
      const copy = story.send(1, earliest)
      story.wait(500)
      const delivery = story.deliver(copy, 1, "a1")
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(0))
      story.back(delivery, "asked")
      story.answer(delivery, retry(0))
      story.ask(story.deliver(copy, 1, "b1"), Story.asked("Release", { delay: 3_600_000 }))
    }
    expect(broken(tell(501), world)).toEqual([])
    expect(broken(tell(500), world)).toEqual(["late"])
  })

  it("a copy that is held back for longer than was asked", () => {
    const tell = (due: number) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.store(1, { process: "a1", of: delivery, due })
      story.gone(copy, 1, "settled", delivery)
      story.answer(delivery, retry(1000))
    }
    expect(broken(tell(1051))).toEqual([])
    expect(broken(tell(1052))).toEqual(["late"])
  })
})

describe("pauses", () => {
  /** A dead letter that is refused, and tried again after each of these pauses. */
  const quarantined =
    (...pauses: ReadonlyArray<number>) =>
    (story: Story.Story) => {
      const { delivery } = first(story)
      story.run(delivery, { error: "permanent" })
      story.ask(delivery, deadLetter("permanent"))
      story.answer(delivery, deadLetter("permanent"), "rejected")
      story.say({ _tag: "Told", process: "a1", event: "Quarantined", id: "m1", detail: "" })
      for (const pause of pauses) {
        story.wait(pause)
        story.ask(delivery, deadLetter("permanent"))
        story.answer(delivery, deadLetter("permanent"), "rejected")
      }
    }

  it("grow from a second to a minute", () => {
    expect(broken(quarantined(1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000))).toEqual([])
    expect(broken(quarantined(900))).toEqual(["pauses"])
    expect(broken(quarantined(1000, 1000))).toEqual(["pauses"])
    expect(broken(quarantined(1000, 2000, 4000, 8000, 16_000, 32_000, 50_000))).toEqual(["pauses"])
  })

  it("have an end", () => {
    const tell = (wait: number) => (story: Story.Story) => {
      quarantined(1000)(story)
      story.wait(wait)
      story.end("time")
    }
    expect(broken(tell(180_000))).toEqual([])
    expect(broken(tell(180_001))).toEqual(["pauses"])
  })

  it("do not keep smaller copies from being tried at once", () => {
    const tell = (story: Story.Story) => {
      const { delivery } = first(story)
      story.run(delivery, { error: "permanent" })
      for (const cut of [0, 1, 2]) {
        const letter = Story.asked("DeadLetter", { reason: "permanent", cut })
        story.ask(delivery, letter)
        story.answer(delivery, letter, "rejected")
      }
    }
    expect(broken(tell)).toEqual([])
  })
})

describe("attempts", () => {
  it("are not too few, unless the message and its replacement have one name", () => {
    const tell = (isReplaced: boolean, before: number) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.start("b1", 1)
      const second = story.deliver(copy, 1, "b1", before)
      story.run(second, { error: "error" })
      story.wait(1)
      const due = story.history.at(-1)!.at
      story.say({ _tag: "Back", copy, key: 1, delivery: second, due, why: "asked", replaced: isReplaced })
      story.run(story.deliver(copy, 1, "a1", 2))
    }
    expect(broken(tell(false, 2))).toContain("attempts")
    expect(broken(tell(true, 2))).not.toContain("attempts")
    expect(broken(tell(true, 1))).toContain("attempts")
  })

  it("are not too few after a replacement, which counts from before the run of its original", () => {
    const tell = (replaced: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.start("b1", 1)
      story.say({ _tag: "Back", copy, key: 1, delivery, due: 0, why: "asked", replaced })
      story.run(delivery)
      const replacement = story.deliver(copy, 1, "b1", 1)
      story.run(replacement, { error: "error" })
      story.run(story.deliver(story.settle(replacement, retry(0)), 1, "b1", 2))
    }
    expect(broken(tell(false))).toContain("attempts")
    expect(broken(tell(true))).not.toContain("attempts")
  })

  it("are not too many, unless the message and its replacement have one name", () => {
    const tell = (replaces: boolean) => (story: Story.Story) => {
      story.start("a1", 2)
      const original = story.deliver(story.send(1), 1, "a1", 3)
      const replacement = story.deliver(story.store(1, { process: "a1", of: original, replaces }), 1, "a1", 2)
      story.run(story.deliver(story.settle(replacement, retry(0)), 1, "a1", 4))
    }
    expect(broken(tell(false))).toContain("attempts")
    expect(broken(tell(true))).not.toContain("attempts")
  })

  it("may be too few on a classic queue that refuses the copies which count", () => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.start("b1")
      story.run(story.deliver(copy, 1, "b1", 1))
    }
    const server = (queueType: "quorum" | "classic", refused: number) =>
      Story.scenario({
        rabbitmq: { version: "4.3.6", queueType, topology: "auto" },
        refusals: [{ key: refused, of: "retry", until: 5, reason: "BodyTooLarge" }]
      })
    expect(broken(tell, server("quorum", 1))).toContain("attempts")
    expect(broken(tell, server("classic", 2))).toContain("attempts")
    expect(broken(tell, server("classic", 1))).not.toContain("attempts")
  })

  it("may be too few on a classic queue whose process could not publish the copies which count", () => {
    const tell = (site: string, alarm?: "during" | "before") => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      const throttle = { operation: 1, what: "Throttle" } as const
      story.run(delivery, { error: "error" })
      story.start("b1")
      if (alarm !== undefined) story.say({ _tag: "Operates", ...throttle })
      if (alarm === "before") story.say({ _tag: "Operated", ...throttle, count: 0, failed: undefined })
      const next = story.handOut(copy, 1, "b1", 2)
      story.say({ _tag: "Fault", site, kind: "cut" })
      story.arrive(next)
      story.run(next, { error: "error" })
      story.run(story.deliver(copy, 1, "a1", 2))
    }
    const server = (queueType: "quorum" | "classic") =>
      Story.scenario({ rabbitmq: { version: "4.3.6", queueType, topology: "auto" } })
    expect(broken(tell("cut b1 publish up 1"), server("quorum"))).toContain("attempts")
    expect(broken(tell("cut a1 publish up 1"), server("classic"))).toContain("attempts")
    expect(broken(tell("cut b1 publish up 1"), server("classic"))).not.toContain("attempts")
    expect(broken(tell("cut a1 publish up 1", "before"), server("classic"))).toContain("attempts")
    expect(broken(tell("cut a1 publish up 1", "during"), server("classic"))).not.toContain("attempts")
  })

  it("are not fewer than handlers began, nor more than were handed out", () => {
    const tell = (attempts: number) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.start("b1")
      story.begin(delivery)
      story.kill("a1")
      story.back(delivery, "connection")
      story.run(story.deliver(copy, 1, "b1", attempts))
    }
    expect(broken(tell(1))).toEqual(["attempts"])
    expect(broken(tell(2))).toEqual([])
    expect(broken(tell(3))).toEqual(["attempts"])
  })

  it("count a later one that was settled before an earlier one came", () => {
    const tell = (isSettled: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story, 3)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.back(delivery, "asked")
      story.answer(delivery, retry(1000), "unknown")
      story.wait(1000)
      const [from, early, late] = [{ key: 1, queue: "work", process: "a1" }, 900, 901]
      for (const [index, each] of [early, late].entries()) {
        story.say({ _tag: "HandedOut", copy, delivery: each, count: index + 2, ...from })
      }
      story.say({ _tag: "Arrived", delivery: late, attempts: 3, ...from })
      if (isSettled) {
        story.say({ _tag: "Asked", process: "a1", delivery: late, settlement: retry(0) })
        story.say({ _tag: "Answered", process: "a1", delivery: late, settlement: retry(0), fate: undefined })
      }
      story.say({ _tag: "Arrived", delivery: early, attempts: 2, ...from })
      story.say({ _tag: "Began", process: "a1", run: 902, given: [{ key: 1, delivery: early, attempts: 3 }] })
    }
    const world = Story.scenario({ kind: "sqs" })
    expect(broken(tell(true), world)).not.toContain("attempts")
    expect(broken(tell(false), world)).toContain("attempts")
  })

  it("leave out what this process has lost unseen", () => {
    const tell = (attempts: number, process: string) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.start("b1")
      story.say({ _tag: "Reconnected", process: "a1", gone: [delivery] })
      story.back(delivery, "connection")
      story.run({ key: 1, delivery: story.deliver(copy, 1, process), attempts })
    }
    expect(broken(tell(1, "a1"))).toEqual([])
    expect(broken(tell(2, "a1"))).toEqual(["attempts"])
    expect(broken(tell(2, "b1"))).toEqual([])
  })

  it("go on with the copy", () => {
    const tell = (attempts: number) => (story: Story.Story) => {
      const { delivery } = first(story)
      story.run(delivery, { error: "error" })
      const copy = story.settle(delivery, retry(1000))
      story.wait(1000)
      story.run(story.deliver(copy, 1, "a1", attempts))
    }
    expect(broken(tell(1))).toEqual(["attempts"])
    expect(broken(tell(2))).toEqual([])
  })

  it("end where maxDeliveries does", () => {
    const tell = (deliveries: number) => (story: Story.Story) => {
      const copy = story.send(1)
      for (let count = 1; count <= deliveries; count++) {
        story.start(`a${count}`)
        const delivery = story.deliver(copy, 1, `a${count}`)
        story.begin(delivery)
        story.kill(`a${count}`)
        story.back(delivery, "connection")
      }
    }
    const world = Story.scenario({ version: { maxDeliveries: 4 } })
    expect(broken(tell(4), world)).toEqual([])
    expect(broken(tell(5), world)).toEqual(["attempts"])
  })

  /** A handler that fails while its message comes again, and is run again at once. */
  const rerun = (
    promise: boolean,
    takes: number,
    others: number,
    attempts = 1 + others,
    { stands = 0, ...world }: Story.Changes & { readonly stands?: number } = {}
  ) => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story, 2)
      const run = story.begin(delivery)
      if (stands > 0) story.say({ _tag: "Frozen", process: "a1", until: stands })
      story.wait(takes)
      story.back(delivery, "lease")
      for (let count = 1; count <= others; count++) story.back(story.deliver(copy, 1, "b1"), "lease")
      const next = story.deliver(copy, 1, "a1")
      story.ended(run, { error: "error" })
      story.run({ key: 1, delivery: next, attempts })
    }
    const version = { immediate: 1, maxDeliveries: 4, promise }
    return broken(tell, Story.scenario({ kind: "nsq", version, ...world }))
  }

  it("are the same in the place of a delivery whose handler runs: an Effect is waited for, a promise is not", () => {
    expect(rerun(false, 20_000, 0)).toEqual([])
    expect(rerun(false, 20_000, 0, 2)).toEqual(["attempts"])
    expect(rerun(true, 9000, 0)).toEqual([])
    expect(rerun(true, 20_000, 0)).toEqual(["attempts"])
  })

  it("are perhaps the same where a process stood still, and timers ran late", () => {
    expect(rerun(true, 20_000, 0, 1, { stands: 15_000 })).toEqual([])
    expect(rerun(true, 20_000, 0, 2, { stands: 15_000 })).toEqual([])
    expect(rerun(true, 9000, 0, 2, { stands: 8000 })).toEqual(["attempts"])
  })

  it("are the same when the clock is set: timers count on", () => {
    const jumping = { ...Story.process("a"), clock: { offset: 0, speed: 1, jumps: [{ at: 4000, by: 60_000 }] } }
    const world = { processes: [jumping, Story.process("b")] }
    expect(rerun(true, 5000, 0, 1, world)).toEqual([])
    expect(rerun(true, 5000, 0, 2, world)).toEqual(["attempts"])
    expect(rerun(true, 20_000, 0, 1, world)).toEqual(["attempts"])
  })

  it("may be more than maxDeliveries there", () => {
    expect(rerun(false, 0, 4)).toEqual([])
    expect(rerun(true, 20_000, 4)).toEqual(["attempts"])
  })
})

it("attempts: the redelivery of a returned message whose return was refused continues it", () => {
  const tell = (fate: "transient" | undefined) => (story: Story.Story) => {
    const { copy, delivery } = first(story)
    story.run(delivery, { how: "interrupted" })
    story.ask(delivery, release)
    if (fate === undefined) story.back(delivery, "asked")
    story.answer(delivery, release, fate)
    if (fate !== undefined) {
      story.say({ _tag: "Lapsed", process: "a1", delivery })
      story.back(delivery, "lease")
    }
    story.run({ key: 1, delivery: story.deliver(copy, 1, "a1", 2), attempts: 1 })
  }
  const world = Story.scenario({ kind: "sqs", lease: 5000, version: { maxAttempts: 1, maxDeliveries: 1 } })
  expect(broken(tell("transient"), world)).not.toContain("attempts")
  expect(broken(tell(undefined), world)).toContain("attempts")
})

it("unseen: what nobody ran is not given up, unless it came too often", () => {
  const tell = (reason: string, crashes: number, attempts: number) => (story: Story.Story) => {
    const copy = story.send(1)
    for (let count = 1; count <= crashes; count++) {
      story.start(`a${count}`)
      const delivery = story.deliver(copy, 1, `a${count}`)
      story.kill(`a${count}`)
      story.back(delivery, "connection")
    }
    story.start("b1")
    story.settle(story.deliver(copy, 1, "b1", attempts), deadLetter(reason))
  }
  const world = Story.scenario({ version: { maxDeliveries: 4 } })
  expect(broken(tell("retries-exhausted", 2, 3), world)).toContain("unseen")
  expect(broken(tell("too-many-deliveries", 2, 5), world)).toEqual(["unseen"])
  expect(broken(tell("too-many-deliveries", 3, 4), world)).toContain("unseen")
  expect(broken(tell("too-many-deliveries", 4, 5), world)).toEqual([])
})

it("unseen: what was given up by right is given up again on a delivery that was on its way for longer", () => {
  const tell = (reason: string) => (story: Story.Story) => {
    const copy = story.send(1)
    story.start("a1")
    const late = story.handOut(copy, 1, "a1")
    const later = story.deliver(copy, 1, "a1")
    story.ask(later, deadLetter(reason))
    story.answer(later, deadLetter(reason), "unknown")
    story.arrive(late)
    story.settle(late, deadLetter(reason))
  }
  expect(broken(tell("too-many-deliveries"), Story.scenario({ kind: "sqs", version: { maxDeliveries: 1 } }))).toEqual(
    []
  )
})

describe("concurrency", () => {
  /** Handlers that are begun one beside the other, with these attempts. */
  const beside = (attempts: ReadonlyArray<number>, concurrency: number) => {
    const tell = (story: Story.Story) => {
      story.start("a1", 5)
      attempts.forEach((each, index) => {
        const key = index + 1
        story.begin({ key, delivery: story.deliver(story.send(key), key, "a1"), attempts: each })
      })
    }
    return broken(tell, Story.scenario({ version: { concurrency } })).filter((law) => law !== "attempts")
  }

  it("no more handlers than allowed, and suspects alone", () => {
    expect(beside([1, 1], 1)).toEqual(["concurrency"])
    expect(beside([1, 1], 2)).toEqual([])
    expect(beside([4], 2)).toEqual([])
    expect(beside([4, 1], 2)).toEqual(["concurrency"])
    expect(beside([1, 4], 2)).toEqual(["concurrency"])
  })

  it("no larger batches than allowed", () => {
    const tell = (story: Story.Story) => {
      story.start("a1", 5)
      const one = story.deliver(story.send(1), 1, "a1")
      story.begin(one, story.deliver(story.send(2), 2, "a1"))
    }
    expect(broken(tell, Story.scenario({ version: { batch: { size: 1, wait: 0 } } }))).toEqual(["concurrency"])
    expect(broken(tell, Story.scenario({ version: { batch: { size: 2, wait: 0 } } }))).toEqual([])
  })
})

it("credit: more deliveries than it allows, unless some are gone", () => {
  const tell = (isGone: boolean) => (story: Story.Story) => {
    const { delivery } = first(story)
    if (isGone) story.say({ _tag: "Reconnected", process: "a1", gone: [delivery] })
    story.deliver(story.send(2), 2, "a1")
  }
  expect(broken(tell(false))).toEqual(["credit"])
  expect(broken(tell(true))).toEqual([])
})

it("credit: not what another delivery of its message has settled", () => {
  const tell = (isSettled: boolean) => (story: Story.Story) => {
    const { copy } = first(story)
    const echo = story.deliver(copy, 1, "a1", 2)
    if (isSettled) story.gone(copy, 1, "settled", echo)
    story.deliver(story.send(2), 2, "a1")
    story.deliver(story.send(3), 3, "a1")
  }
  const world = Story.scenario({ kind: "sqs" })
  expect(broken(tell(true), world)).not.toContain("credit")
  expect(broken(tell(false), world)).toContain("credit")
})

it("settle once: nothing after an answer that ends it, nor before any answer", () => {
  const tell = (fate: "unknown" | "lost" | "none" | undefined) => (story: Story.Story) => {
    const { delivery } = first(story)
    story.run(delivery)
    story.ask(delivery, ack)
    if (fate !== "none") story.answer(delivery, ack, fate)
    story.ask(delivery, ack)
  }
  expect(broken(tell(undefined))).toEqual(["settle once"])
  expect(broken(tell("lost"))).toEqual(["settle once"])
  expect(broken(tell("none"))).toEqual(["settle once"])
  expect(broken(tell("unknown"))).toEqual([])
})

it("refused: a smaller copy, or quarantine", () => {
  const tell = (cut: number, isQuarantined: boolean) => (story: Story.Story) => {
    const { delivery } = first(story)
    story.run(delivery, { error: "permanent" })
    story.ask(delivery, deadLetter("permanent"))
    story.answer(delivery, deadLetter("permanent"), "rejected")
    if (isQuarantined) story.say({ _tag: "Told", process: "a1", event: "Quarantined", id: "m1", detail: "" })
    if (cut === 0) story.wait(1000)
    story.ask(delivery, { ...deadLetter("permanent"), cut })
  }
  expect(broken(tell(0, false))).toEqual(["refused"])
  expect(broken(tell(1, false))).toEqual([])
  expect(broken(tell(0, true))).toEqual([])
})

describe("smaller: a copy that leaves out enough is accepted", () => {
  /** The laws that a refusal of the copy breaks, after a refusal of another message, `wait` milliseconds and the attempt of a third one. */
  const tell = (
    cut: number,
    others: Scenario["refusals"] = [],
    before: { readonly isRefused?: boolean; readonly wait?: number; readonly third?: "open" | "stored" } = {}
  ) => {
    const refusals = [{ key: 1, of: "deadLetter" as const, until: 1, reason: "BodyTooLarge" as const }, ...others]
    return broken(
      (story) => {
        const { delivery } = first(story, 3)
        const [other, third] = [2, 3].map((key) => story.deliver(story.send(key), key, "a1")) as [number, number]
        for (const each of [other, third, delivery]) story.run(each, { error: "permanent" })
        if (before.isRefused === true) {
          story.ask(other, deadLetter("permanent"))
          story.answer(other, deadLetter("permanent"), "rejected")
        }
        story.wait(before.wait ?? 0)
        if (before.third !== undefined) story.ask(third, deadLetter("permanent"))
        if (before.third === "stored") {
          story.store(3, { queue: "work.dlq", process: "a1", of: third })
          story.answer(third, deadLetter("permanent"))
        }
        const letter = Story.asked("DeadLetter", { reason: "permanent", cut })
        story.ask(delivery, letter)
        story.answer(delivery, letter, "rejected")
      },
      Story.scenario({ refusals, version: { concurrency: 3 } })
    ).filter((law) => law === "smaller")
  }
  const refusal = (reason: Scenario["refusals"][number]["reason"]) =>
    [{ key: 2, of: "deadLetter" as const, until: 5, reason }] as const

  it("alone, or after other messages that were refused for themselves", () => {
    expect(tell(0)).toEqual([])
    expect(tell(1)).toEqual(["smaller"])
    expect(tell(1, refusal("BodyTooLarge"), { isRefused: true })).toEqual(["smaller"])
    expect(tell(1, refusal("Unroutable"))).toEqual(["smaller"])
  })

  it("unless its route was just refused for another message", () => {
    expect(tell(1, refusal("Unroutable"), { isRefused: true })).toEqual([])
    expect(tell(1, refusal("Unroutable"), { isRefused: true, wait: 3000 })).toEqual(["smaller"])
  })

  it("unless another message tries its route, which was refused", () => {
    expect(tell(1, [], { third: "open" })).toEqual(["smaller"])
    expect(tell(1, refusal("Unroutable"), { isRefused: true, wait: 3000, third: "open" })).toEqual([])
    expect(tell(1, refusal("Unroutable"), { isRefused: true, wait: 3000, third: "stored" })).toEqual(["smaller"])
  })
})

it("after death: nothing", () => {
  const tell = (isDead: boolean) => (story: Story.Story) => {
    const { delivery } = first(story)
    story.run(delivery)
    if (isDead) story.kill("a1")
    story.ask(delivery, ack)
  }
  expect(broken(tell(true))).toEqual(["after death"])
  expect(broken(tell(false))).toEqual([])
})

it("events: they balance", () => {
  const tell = (...events: ReadonlyArray<string>) =>
    broken((story) => {
      const { delivery } = first(story)
      story.run(delivery)
      story.settle(delivery, ack)
      for (const event of events) story.say({ _tag: "Told", process: "a1", event, id: "m1", detail: "" })
    })
  expect(tell("Received", "Succeeded")).toEqual([])
  expect(tell("Received")).toEqual(["events"])
  expect(tell("Received", "Succeeded", "Released")).toEqual(["events"])
})

it("health: it says when nothing moves, and not before", () => {
  const tell = (state: string, wait: number, buffered: number) =>
    broken((story) => {
      first(story)
      story.wait(wait)
      const rest = { because: [], buffered, inProgress: 0, quarantined: 0, connection: "up" as const }
      story.say({ _tag: "Health", process: "a1", state, ...rest })
    })
  expect(tell("running", 200_000, 1)).toEqual(["health"])
  expect(tell("running", 200_000, 0)).toEqual([])
  expect(tell("stalled", 200_000, 1)).toEqual([])
  expect(tell("stalled", 30_000, 1)).toEqual(["health"])
})

it("health: each refused delivery of a message may be in quarantine, and no other", () => {
  const tell = (quarantined: number) =>
    broken((story) => {
      const { copy, delivery } = first(story)
      story.run(delivery)
      story.ask(delivery, ack)
      story.answer(delivery, ack, "rejected")
      story.settle(story.deliver(copy, 2, "a1"), ack)
      const rest = { because: [], buffered: 0, inProgress: 1, connection: "up" as const }
      story.say({ _tag: "Health", process: "a1", state: "running", quarantined, ...rest })
    })
  expect(tell(1)).not.toContain("health")
  expect(tell(2)).toContain("health")
})

it("health: a redelivery during a settlement is no move", () => {
  const tell = (isSettling: boolean) =>
    broken(
      (story) => {
        const { copy, delivery } = first(story)
        story.run(delivery)
        story.ask(delivery, ack)
        if (!isSettling) story.answer(delivery, ack)
        story.wait(100_000)
        story.deliver(copy, 1, "a1", 2)
        story.wait(5000)
        const counts = { because: [], buffered: 0, inProgress: 1, quarantined: 0 }
        story.say({ _tag: "Health", process: "a1", state: "stalled", connection: "up", ...counts })
      },
      Story.scenario({ kind: "sqs" })
    )
  expect(tell(true)).not.toContain("health")
  expect(tell(false)).toContain("health")
})

it("health: what arrives beside a handler at work ends no stall", () => {
  const tell = (isAtWork: boolean) =>
    broken((story) => {
      const { delivery } = first(story, 2)
      if (isAtWork) story.begin(delivery)
      story.wait(70_000)
      story.deliver(story.send(2), 2, "a1")
      const rest = { because: [], buffered: 1, inProgress: 1, quarantined: 0, connection: "up" as const }
      story.say({ _tag: "Health", process: "a1", state: "stalled", ...rest })
    })
  expect(tell(true)).toEqual([])
  expect(tell(false)).toEqual(["health"])
})

it("health: what is kept until it is due is no stall, though it goes on later", () => {
  const tell = (fate: "rejected" | "unknown") =>
    broken((story) => {
      const { delivery } = first(story)
      story.run(delivery, { error: "error" })
      story.ask(delivery, retry(1000))
      story.answer(delivery, retry(1000), fate)
      story.wait(200_000)
      const rest = { because: [], buffered: 0, inProgress: 1, quarantined: 0, connection: "up" as const }
      story.say({ _tag: "Health", process: "a1", state: "running", ...rest })
      story.settle(delivery, retry(0))
    })
  expect(tell("rejected")).toEqual([])
  expect(tell("unknown")).toContain("health")
})

it("drain and room: what its daemon has forgotten is nobody's", () => {
  const drain = (isForgotten: boolean) =>
    broken(
      (story) => {
        const { copy } = first(story)
        if (isForgotten) story.gone(copy, 1, "forgotten")
        story.drain("a1")
        story.say({ _tag: "Drained", process: "a1", complete: true })
      },
      Story.scenario({ kind: "nsq" })
    )
  expect(drain(false)).toEqual(["drain"])
  expect(drain(true)).toEqual([])
  const room = (isForgotten: boolean) =>
    broken(
      (story) => {
        const { copy, delivery } = first(story, 2)
        story.begin(delivery)
        if (isForgotten) story.gone(copy, 1, "forgotten")
        story.say({ _tag: "Credit", process: "a1", limit: 1 })
      },
      Story.scenario({ kind: "nsq", version: { concurrency: 2 } })
    )
  expect(room(false)).toEqual(["room"])
  expect(room(true)).toEqual([])
})

it("room: a lease that has lapsed takes room as long as a handler has its message", () => {
  const tell = (hasLapsed: boolean) =>
    broken(
      (story) => {
        const { delivery } = first(story, 2)
        story.begin(delivery)
        if (hasLapsed) story.say({ _tag: "Lapsed", process: "a1", delivery })
        story.say({ _tag: "Credit", process: "a1", limit: 1 })
      },
      Story.scenario({ kind: "nsq", version: { concurrency: 2 } })
    )
  expect(tell(false)).toEqual(["room"])
  expect(tell(true)).toEqual([])
})

it("room: a lost delivery takes room until its settlement is answered", () => {
  const tell = (isAnswered: boolean) =>
    broken(
      (story) => {
        const { delivery } = first(story, 2)
        story.run(delivery)
        story.ask(delivery, ack)
        story.say({ _tag: "Reconnected", process: "a1", gone: [delivery] })
        const other = story.deliver(story.send(2), 2, "a1")
        story.begin(other)
        if (isAnswered) story.answer(delivery, ack, "lost")
        story.say({ _tag: "Credit", process: "a1", limit: 1 })
      },
      Story.scenario({ kind: "nsq", version: { concurrency: 2 } })
    )
  expect(tell(false)).toEqual([])
  expect(tell(true)).toEqual(["room"])
})

it("room: what the broker refuses adds to it, though a handler has a lost delivery", () => {
  const tell = (fate: "rejected" | "transient") =>
    broken(
      (story) => {
        const { delivery } = first(story, 2)
        story.begin(delivery)
        story.say({ _tag: "Reconnected", process: "a1", gone: [delivery] })
        const refused = story.deliver(story.send(2), 2, "a1")
        story.run(refused, { error: "error" })
        story.ask(refused, retry(1000))
        story.answer(refused, retry(1000), fate)
        story.say({ _tag: "Credit", process: "a1", limit: 2 })
        story.deliver(story.send(3), 3, "a1")
      },
      Story.scenario({ version: { concurrency: 2 } })
    )
  expect(tell("rejected")).not.toContain("room")
  expect(tell("transient")).toContain("room")
})

it("room: a limit of the rate leaves none for another message, until it allows a run", () => {
  const tell = (max: number) =>
    broken(
      (story) => {
        story.begin(first(story, 2).delivery)
        story.say({ _tag: "Credit", process: "a1", limit: 1 })
      },
      Story.scenario({ version: { concurrency: 2, rateLimit: { max, per: 10_000 } } })
    )
  expect(tell(1)).toEqual([])
  expect(tell(2)).toEqual(["room"])
})

it("room: an immediate rerun takes the limit's room before its handler begins", () => {
  const tell = (wait: number) =>
    broken(
      (story) => {
        const { delivery } = first(story, 2)
        story.begin(story.deliver(story.send(2), 2, "a1"))
        story.run(delivery, { error: "error" })
        story.say({ _tag: "Credit", process: "a1", limit: 1 })
        story.wait(wait)
        story.begin(delivery)
      },
      Story.scenario({ version: { concurrency: 2, immediate: 1, rateLimit: { max: 3, per: 10_000 } } })
    )
  expect(tell(0)).toEqual([])
  expect(tell(5)).toEqual(["room"])
})

it("room: a lost delivery that its handler still has is room of the consumer, which a limit of the rate keeps from the credit", () => {
  const tell = (concurrency: number) =>
    broken(
      (story) => {
        const { delivery } = first(story)
        story.begin(delivery)
        story.say({ _tag: "Reconnected", process: "a1", gone: [delivery] })
        story.wait(10_000)
        story.say({ _tag: "Credit", process: "a1", limit: 1 })
        story.deliver(story.send(2), 2, "a1")
      },
      Story.scenario({ version: { concurrency, handlerTimeout: 60_000, rateLimit: { max: 1, per: 10_000 } } })
    )
  expect(tell(1)).toContain("room")
  expect(tell(2)).not.toContain("room")
})

it("room: copies with one name take it once", () => {
  const tell = (replaces: boolean) =>
    broken(
      (story) => {
        const { copy, delivery } = first(story, 2)
        story.begin(delivery)
        story.say({ _tag: "Reconnected", process: "a1", gone: [delivery] })
        story.back(delivery, "connection")
        story.start("b1")
        const other = story.handOut(copy, 1, "b1")
        const made = story.store(1, { process: "b1", of: other, replaces })
        story.deliver(made, 1, "a1", 2)
        story.deliver(story.send(2), 2, "a1")
      },
      Story.scenario({ version: { concurrency: 2 } })
    )
  expect(tell(true)).not.toContain("room")
  expect(tell(false)).toContain("room")
})

it("drain: what is not given back, unless the call that hides it met a fault", () => {
  const tell = (site: string, before = 0) =>
    broken(
      (story) => {
        first(story)
        story.say({ _tag: "Fault", site, kind: "busy" })
        story.wait(before)
        story.drain("a1")
        story.say({ _tag: "Drained", process: "a1", complete: false })
      },
      Story.scenario({ kind: "sqs", lease: 30_000 })
    )
  expect(tell("busy a1 hide entry 3")).toEqual([])
  expect(tell("busy a1 hide entry 3", 9000)).toEqual([])
  expect(tell("busy a1 hide entry 3", 11_000)).toEqual(["drain"])
  expect(tell("busy b1 hide entry 3")).toEqual(["drain"])
})

it("drain: what has come again while its return had no answer is returned with it", () => {
  const tell = (isAnswered: boolean) =>
    broken(
      (story) => {
        const { copy, delivery } = first(story, 2)
        story.ask(delivery, release)
        if (isAnswered) story.answer(delivery, release)
        story.drain("a1")
        story.deliver(copy, 1, "a1")
        story.wait(60_000)
        story.say({ _tag: "Drained", process: "a1", complete: false })
      },
      Story.scenario({ kind: "sqs" })
    )
  expect(tell(false)).not.toContain("drain")
  expect(tell(true)).toContain("drain")
})

it("drain: a handler that cannot be interrupted keeps what has come again while it runs", () => {
  const tell = (isEnded: boolean) =>
    broken((story) => {
      const { copy, delivery } = first(story, 2)
      const run = story.begin(delivery)
      story.back(delivery, "connection")
      story.deliver(copy, 1, "a1")
      story.drain("a1")
      story.wait(1000)
      if (isEnded) story.ended(run, { how: "interrupted" })
      story.say({ _tag: "Drained", process: "a1", complete: false })
    })
  expect(tell(false)).not.toContain("drain")
  expect(tell(true)).toContain("drain")
})

it("people: a job goes on, unless its connection was lost before it began", () => {
  const tell = (failed: string, wait: number, site = "cut operator publish up 1") =>
    broken(
      (story) => {
        story.say({ _tag: "Fault", site, kind: site.startsWith("late") ? "late" : "cut" })
        story.wait(wait)
        story.say({ _tag: "Operates", operation: 0, what: "Redrive" })
        story.wait(5000)
        story.say({ _tag: "Operated", operation: 0, what: "Redrive", count: undefined, failed })
      },
      Story.scenario({
        operations: [{ at: 0, what: { _tag: "Redrive", queue: "work.dlq", limit: undefined, odd: false } }]
      })
    )
  expect(tell("BrokerError", 5000)).toEqual([])
  expect(tell("BrokerError", 12_000)).toEqual(["operators"])
  expect(tell("BrokerError", 12_000, "late operator consume up 1")).toEqual([])
  expect(tell("BrokerError", 20_000, "late operator consume up 1")).toEqual(["operators"])
  expect(tell("BrokerError", 5000, "cut a1 publish up 1")).toEqual(["operators"])
  expect(tell("DeadLettersStopped", 5000)).toEqual(["operators"])
})

it("people: a redrive takes the letters that were there when it began, though another operation was delivered some before", () => {
  const tell = (isOther: boolean) =>
    broken(
      (story) => {
        const letter = (key: 1 | 2): number => story.store(key, { queue: "work.dlq", reason: "permanent" })
        const take = (copy: number, key: 1 | 2): void => void story.settle(story.deliver(copy, key, "operator"), ack)
        const operate = (operation: number): void => story.say({ _tag: "Operates", operation, what: "Redrive" })
        const end = (operation: number, count: number): void =>
          story.say({ _tag: "Operated", operation, what: "Redrive", count, failed: undefined })
        const early = letter(1)
        if (isOther) operate(1)
        operate(0)
        story.back(story.handOut(early, 1, "operator"), "asked")
        if (isOther) end(1, 0)
        const late = letter(2)
        take(early, 1)
        take(late, 2)
        end(0, 2)
      },
      Story.scenario({
        operations: [0, 0].map((at) => ({
          at,
          what: { _tag: "Redrive", queue: "work.dlq", limit: undefined, odd: false }
        }))
      })
    )
  expect(tell(true)).not.toContain("operators")
  expect(tell(false)).toContain("operators")
})

it("people: a purge of a FIFO queue may count letters as not browsed that had left it within a minute", () => {
  const tell = (fifo: "block" | undefined, wait: number) =>
    broken(
      (story) => {
        story.gone(story.store(1, { queue: "work.dlq" }), 1, "purged")
        story.wait(wait)
        story.say({ _tag: "Operates", operation: 0, what: "Purge" })
        story.say({ _tag: "Operated", operation: 0, what: "Purge", count: undefined, failed: "DeadLettersStopped" })
      },
      Story.scenario({
        kind: "sqs",
        operations: [{ at: 0, what: { _tag: "Purge", queue: "work.dlq", odd: true } }],
        ...(fifo === undefined ? {} : { fifo })
      })
    )
  expect(tell("block", 60_000)).not.toContain("operators")
  expect(tell("block", 60_001)).toContain("operators")
  expect(tell(undefined, 60_000)).toContain("operators")
})

it("defects are violations", () => {
  expect(broken((story) => story.say({ _tag: "Defect", process: "a1", detail: "it broke" }))).toEqual(["defect"])
})

describe("liveness", () => {
  /** What a story breaks that ends after the calm. */
  const atEnd = (tell: (story: Story.Story) => void, world?: Scenario, because: "rest" | "time" = "rest") =>
    broken((story) => {
      tell(story)
      story.say({ _tag: "Calm" })
      story.wait(1)
      story.end(because)
    }, world)

  it("what nobody takes, or nobody settles", () => {
    const send = (story: Story.Story) => {
      story.start("a1")
      story.send(1)
    }
    expect(atEnd(send)).toEqual(["liveness"])
    expect(atEnd((story) => void first(story))).toEqual(["liveness"])
    expect(atEnd((story) => void story.settle(first(story).delivery, release))).toEqual(["liveness"])
  })

  it("what waits for its time, except by a clock that is behind", () => {
    const holds = (story: Story.Story) => {
      story.start("a1")
      const delivery = story.deliver(story.send(1, 5000), 1, "a1")
      story.settle(delivery, { ...release, delay: 3_600_000 })
    }
    const keeps = (story: Story.Story) => {
      story.start("a1")
      const delivery = story.deliver(story.send(1, 5000), 1, "a1")
      story.ask(delivery, { ...release, delay: 3_600_000 })
      story.answer(delivery, release, "rejected")
      story.say({ _tag: "Credit", process: "a1", limit: 2 })
    }
    const behind = (offset: number) =>
      Story.scenario({ kind: "sqs", processes: [{ ...Story.process("a"), clock: { offset, speed: 1, jumps: [] } }] })
    for (const waits of [holds, keeps]) {
      for (const because of ["rest", "time"] as const) {
        expect(atEnd(waits, behind(-3_600_000), because)).not.toContain("liveness")
        expect(atEnd(waits, behind(-1_800_000), because)).toContain("liveness")
      }
    }
  })

  it("nor what waits on NSQ by the clock of a process that was ahead, and returned it before its time", () => {
    const returned = (names: ReadonlyArray<string>) => (story: Story.Story) => {
      for (const name of ["a1", "b1"]) story.start(name)
      let copy = story.send(1, 5000)
      for (const name of names) {
        const delivery = story.deliver(copy, 1, name)
        const delay = name === "a1" ? 4000 : 3_600_000
        story.ask(delivery, Story.asked("Release", { delay }))
        const next = story.store(1, { process: name, of: delivery, due: delay })
        story.gone(copy, 1, "settled", delivery)
        story.answer(delivery, Story.asked("Release", { delay }))
        copy = next
      }
    }
    const clock = { offset: 3_600_000, speed: 1, jumps: [] }
    const processes = [{ ...Story.process("a"), clock }, Story.process("b")]
    const world = Story.scenario({ kind: "nsq", lease: 30_000, processes })
    expect(atEnd(returned(["a1", "b1"]), world, "time")).not.toContain("liveness")
    expect(atEnd(returned(["b1"]), world, "time")).toContain("liveness")
  })

  it("nor what waits behind it in its group", () => {
    const tell = (groups: readonly [string, string]) => {
      const sendings = groups.map((group, index) => ({ ...Story.sending(index + 1), group }))
      const processes = [{ ...Story.process("a"), clock: { offset: -3_600_000, speed: 1, jumps: [] } }]
      const world = Story.scenario({ kind: "sqs", fifo: "block", sendings, processes })
      return atEnd((story) => {
        story.start("a1")
        const delivery = story.deliver(story.send(1, 5000), 1, "a1")
        story.send(2)
        story.settle(delivery, { ...release, delay: 3_600_000 })
      }, world)
    }
    expect(tell(["g", "g"])).not.toContain("liveness")
    expect(tell(["g", "h"])).toContain("liveness")
  })

  it("but not what its broker delivers before its time, which is after the end", () => {
    const story =
      (time: number, isDelivered: boolean, wait = 1000) =>
      (told: Story.Story) => {
        told.start("a1")
        told.say({ _tag: "Sending", key: 1, id: "m1", queue: "work", earliest: time })
        const copy = told.store(1, { due: 1000 })
        told.say({ _tag: "Sent", key: 1 })
        told.wait(wait)
        if (isDelivered) told.handOut(copy, 1, "a1")
      }
    const world = Story.scenario({ kind: "nsq", lease: 30_000 })
    const clock = { offset: -60_000, speed: 1, jumps: [] }
    const behind = { ...world, processes: [{ ...Story.process("a"), clock }] }
    for (const isDelivered of [false, true]) {
      expect(atEnd(story(1000, isDelivered), behind, "time")).not.toContain("liveness")
      expect(atEnd(story(600_000, isDelivered, 200_000), world, "time")).toContain("liveness")
      expect(atEnd(story(60_000, isDelivered), world, "time")).not.toContain("liveness")
      expect(atEnd(story(1000, isDelivered), world, "time")).toContain("liveness")
    }
  })

  it("but not what waits for its time, or is refused for ever", () => {
    const waits = (due: number) => (story: Story.Story) => {
      story.start("a1")
      story.say({ _tag: "Sending", key: 1, id: "m1", queue: "work", earliest: 5000 })
      story.store(1, { due })
      story.say({ _tag: "Sent", key: 1 })
    }
    expect(atEnd(waits(5000))).toEqual([])
    expect(atEnd(waits(500_000))).toEqual(["late", "liveness"])

    type Refusal = Scenario["refusals"][number]
    const refuse = (until: number, other: Partial<Refusal> = {}) => {
      const tell = (story: Story.Story) => {
        const { delivery } = first(story)
        story.run(delivery, { error: "permanent" })
        story.ask(delivery, deadLetter("permanent"))
        story.answer(delivery, deadLetter("permanent"), "rejected")
        story.say({ _tag: "Credit", process: "a1", limit: 2 })
      }
      const one: Refusal = { key: 1, of: "deadLetter", until, reason: "Unroutable" }
      return atEnd(tell, Story.scenario({ refusals: [one, { ...one, key: 2, ...other }] }))
    }
    expect(refuse(5)).toEqual([])
    expect(refuse(2)).toEqual(["liveness"])
    // RabbitMQ refuses what is written with a body that is too large, and as large.
    expect(refuse(2, { until: 5, reason: "BodyTooLarge" })).toEqual([])
    expect(refuse(2, { until: 5 })).toEqual(["liveness"])
  })

  it("but not the credit that a settlement under way takes, though its delivery is lost", () => {
    const tell = (isUnderWay: boolean) => {
      const settled = deadLetter("retries-exhausted")
      return broken(
        (story) => {
          const { copy, delivery } = first(story, 2)
          story.run(delivery, { error: "error" })
          story.ask(delivery, settled)
          story.gone(copy, 1, "forgotten")
          story.say({ _tag: "Calm" }, { _tag: "Reconnected", process: "a1", gone: [delivery] })
          if (!isUnderWay) story.answer(delivery, settled, "lost")
          story.say({ _tag: "Credit", process: "a1", limit: 1 })
          story.drain("a1")
          if (isUnderWay) story.answer(delivery, settled, "lost")
          story.say({ _tag: "Drained", process: "a1", complete: true })
          story.end()
        },
        Story.scenario({ kind: "nsq", version: { maxAttempts: 1, prefetch: 1 } })
      )
    }
    expect(tell(true)).toEqual([])
    expect(tell(false)).toEqual(["liveness"])
  })

  it("but not a pause that a probe has begun anew, without a word about the credit", () => {
    const pauses = (wait: number) =>
      atEnd((story) => {
        const { delivery } = first(story)
        story.run(delivery)
        story.ask(delivery, ack)
        story.answer(delivery, ack, "transient")
        story.say({ _tag: "Credit", process: "a1", limit: 0 })
        story.wait(100_000)
        story.settle(delivery, ack)
        story.wait(wait)
      })
    expect(pauses(100_000)).toEqual([])
    expect(pauses(150_000)).toEqual(["liveness"])
  })

  it("runs that do not end, unless nothing can end them", () => {
    const hang = (stubborn: boolean) => {
      const tell = (story: Story.Story) => {
        const { delivery } = first(story)
        story.begin(delivery)
        story.wait(10_000)
        story.settle(delivery, retry(1000))
      }
      return atEnd(
        tell,
        Story.scenario({ sendings: [{ ...Story.sending(1), runs: [{ takes: "forever", stubborn }] }] })
      )
    }
    expect(hang(true)).toEqual([])
    expect(hang(false)).toEqual(["liveness"])
  })

  it("credit that is not whole, drains and operations without an end, and a world that finds no rest", () => {
    const credit = (limit: number, wait = 200_000, world?: Scenario, hasPaused = false) =>
      atEnd((story) => {
        story.start("a1", limit)
        const about = { process: "a1", id: undefined, detail: "handler", level: 1 }
        if (hasPaused) story.say({ _tag: "Told", event: "BackoffEntered", ...about })
        story.wait(wait)
      }, world)
    expect(credit(0)).toEqual(["liveness"])
    expect(credit(1)).toEqual([])
    expect(credit(0, 100_000)).toEqual([])
    const backoff = { multiplier: 1000, max: 1000, stepwise: false }
    expect(credit(1, 200_000, Story.scenario({ version: { concurrency: 2, prefetch: 0 } }))).toEqual(["liveness"])
    const probes = Story.scenario({ version: { concurrency: 2, consumerBackoff: backoff } })
    expect(credit(1, 200_000, probes, true)).toEqual([])
    expect(credit(1, 200_000, probes)).toEqual(["liveness"])
    expect(credit(0, 200_000, probes, true)).toEqual(["liveness"])

    const freeze = (until: number) =>
      atEnd((story) => {
        story.start("a1", 0)
        story.say({ _tag: "Frozen", process: "a1", until })
        story.wait(200_000)
      })
    expect(freeze(300_000)).toEqual([])
    expect(freeze(1000)).toEqual(["liveness"])

    const drained = { _tag: "Drained", process: "a1", complete: true } as const
    const drain = (isDone: boolean) =>
      atEnd((story) => {
        story.start("a1")
        story.drain("a1")
        if (isDone) story.say(drained)
      })
    expect(drain(false)).toEqual(["liveness"])
    expect(drain(true)).toEqual([])

    expect(atEnd((story) => story.say({ _tag: "Operates", operation: 1, what: "List" }))).toEqual(["liveness"])
    expect(atEnd(() => {}, undefined, "time")).toEqual(["liveness"])
    expect(atEnd(() => {})).toEqual([])
  })
})

describe("leases", () => {
  it("a message is with one delivery; the file knows none that a power cut has undone", () => {
    const tell = (isHandedOut: boolean) => (story: Story.Story) => {
      story.start("a1")
      story.start("b1")
      const copy = story.send(1)
      if (isHandedOut) story.deliver(copy, 1, "b1")
      else story.say({ _tag: "Arrived", delivery: -copy, key: 1, queue: "work", process: "b1", attempts: 1 })
      story.deliver(copy, 1, "a1")
    }
    const world = Story.scenario({ kind: "sqlite", lease: 30_000 })
    expect(broken(tell(true), world)).toContain("leases")
    expect(broken(tell(false), world)).not.toContain("leases")
  })
})
