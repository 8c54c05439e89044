/** The laws of programs that pull, that have limits, or whose queue keeps the order of groups. */
import { describe, expect, it } from "vitest"
import * as Checker from "../src/check/Checker.ts"
import type { Scenario } from "../src/Scenario.ts"
import * as Story from "./Story.ts"

const { ack, deadLetter, release, retry } = Story

/** Whether a story breaks a law. */
const breaks = (law: string, tell: (story: Story.Story) => void, world: Scenario): boolean => {
  const story = Story.make()
  tell(story)
  return Checker.check(world, story.history).some((found) => found.law === law)
}

/** A message that was sent and delivered. */
const delivered = (story: Story.Story, key: number): number => story.deliver(story.send(key), key, "a1")

describe("rate", () => {
  const rateLimit = { max: 1, per: 1000 }
  const runs = (pause: number) => (story: Story.Story) => {
    story.start("a1", 2)
    for (const key of [1, 2]) {
      story.run(delivered(story, key))
      story.wait(pause)
    }
  }

  it("no more runs begin in a time than the limit allows", () => {
    const world = Story.scenario({ version: { rateLimit } })
    expect(breaks("rate", runs(900), world)).toBe(true)
    expect(breaks("rate", runs(1000), world)).toBe(false)
  })

  it("the clock of the process counts", () => {
    const processes = [{ ...Story.process("a"), clock: { offset: 0, speed: 2, jumps: [] } }]
    expect(breaks("rate", runs(500), Story.scenario({ version: { rateLimit }, processes }))).toBe(false)
  })

  it("a failed run is not repeated at once if the limit forbids that", () => {
    const failed = (story: Story.Story) => {
      story.start("a1")
      const delivery = delivered(story, 1)
      story.run(delivery, { error: "error" })
      story.settle(delivery, retry(1000))
    }
    expect(breaks("precedence", failed, Story.scenario({ version: { immediate: 1 } }))).toBe(true)
    expect(breaks("precedence", failed, Story.scenario({ version: { immediate: 1, rateLimit } }))).toBe(false)
  })
})

describe("pulls", () => {
  const world = Story.scenario({
    version: { pull: { loops: 1, wait: 5000, pause: 1 }, promise: true, batch: { size: 2, wait: 100 } }
  })
  const pull = (story: Story.Story, takes: number, why: "batch" | "empty" | "interrupted" = "empty") => {
    story.say({ _tag: "Pulling", process: "a1", pull: 1, wait: 5000 })
    story.wait(takes)
    story.say({ _tag: "Pulled", process: "a1", pull: 1, why })
  }

  it("wait as long as they may, and no longer", () => {
    const tell = (takes: number, why?: "interrupted") => (story: Story.Story) => {
      story.start("a1")
      pull(story, takes, why)
    }
    expect(breaks("pulls", tell(4000), world)).toBe(true)
    expect(breaks("pulls", tell(4000, "interrupted"), world)).toBe(false)
    expect(breaks("pulls", tell(5000), world)).toBe(false)
    expect(breaks("pulls", tell(5200), world)).toBe(true)
  })

  it("no message stays that no pull waits for", () => {
    const tell = (isReturned: boolean) => (story: Story.Story) => {
      story.start("a1")
      pull(story, 1, "batch")
      const delivery = delivered(story, 1)
      if (isReturned) story.settle(delivery, release)
      story.wait(60_000)
      story.end()
    }
    expect(breaks("pulls", tell(false), world)).toBe(true)
    expect(breaks("pulls", tell(true), world)).toBe(false)
  })

  it("a batch that the program releases is returned", () => {
    const tell = (settlement: typeof ack) => (story: Story.Story) => {
      story.start("a1")
      const delivery = delivered(story, 1)
      const run = story.begin(delivery)
      story.say({ _tag: "Ended", process: "a1", run, how: "released", error: undefined })
      story.settle(delivery, settlement)
    }
    expect(breaks("precedence", tell(release), world)).toBe(false)
    expect(breaks("precedence", tell(retry(1000)), world)).toBe(true)
  })
})

describe("budget", () => {
  const version = { maxAttempts: 1, budget: { max: 1, perSuccess: 0.5 } }
  const world = Story.scenario({ version })
  const fail = (story: Story.Story, key: number): void => {
    const delivery = delivered(story, key)
    story.run(delivery, { error: "error" })
    story.settle(delivery, deadLetter("retries-exhausted"))
  }
  const succeed = (story: Story.Story, key: number): void => {
    const delivery = delivered(story, key)
    story.run(delivery)
    story.settle(delivery, ack)
  }

  it("no more dead letters than it allows, and successes allow more", () => {
    const tell = (successes: number) => (story: Story.Story) => {
      story.start("a1")
      fail(story, 1)
      for (let nth = 0; nth < successes; nth++) succeed(story, 2)
      fail(story, 3)
    }
    expect(breaks("budget", tell(1), world)).toBe(true)
    expect(breaks("budget", tell(2), world)).toBe(false)
  })

  it("the program stops when it is used up, and not before", () => {
    const tell = (letters: number) => (story: Story.Story) => {
      story.start("a1")
      if (letters > 0) fail(story, 1)
      const delivery = delivered(story, 2)
      story.run(delivery, { error: "error" })
      story.say({ _tag: "Draining", process: "a1", because: "budget" })
      story.settle(delivery, release)
    }
    expect(breaks("budget", tell(0), world)).toBe(true)
    expect(breaks("budget", tell(1), world)).toBe(false)
    expect(breaks("precedence", tell(1), world)).toBe(false)
  })

  it("a dead letter that the broker did not accept costs nothing", () => {
    const tell = (fate: "transient" | undefined) => (story: Story.Story) => {
      story.start("a1")
      const delivery = delivered(story, 1)
      story.run(delivery, { error: "error" })
      story.ask(delivery, deadLetter("retries-exhausted"))
      story.answer(delivery, deadLetter("retries-exhausted"), fate)
      story.say({ _tag: "Draining", process: "a1", because: "budget" })
    }
    expect(breaks("budget", tell("transient"), world)).toBe(true)
    expect(breaks("budget", tell(undefined), world)).toBe(false)
  })

  it("a process that dies may have made a dead letter that it did not request", () => {
    const tell = (isBegun: boolean) => (story: Story.Story) => {
      story.start("a1")
      const delivery = delivered(story, 1)
      if (isBegun) story.run(delivery, { error: "error" })
      story.say({ _tag: "Draining", process: "a1", because: "budget" })
      story.say({ _tag: "Killed", process: "a1", because: "handler" })
    }
    expect(breaks("budget", tell(false), world)).toBe(true)
    expect(breaks("budget", tell(true), world)).toBe(false)
  })
})

describe("order", () => {
  const world = (
    fifo: "block" | "resend",
    version: { batch?: { size: number; wait: number }; immediate?: number } = {}
  ) =>
    Story.scenario({
      kind: "sqs",
      lease: 30_000,
      fifo,
      version: { concurrency: 2, ...version },
      sendings: [1, 2].map((key) => ({ ...Story.sending(key), group: "g" }))
    })
  const both = (story: Story.Story) => {
    story.start("a1", 2)
    const copies = [1, 2].map((key) => story.send(key))
    return copies.map((copy, index) => story.deliver(copy, index + 1, "a1")) as [number, number]
  }

  it("no handler begins before the end of an earlier message of the group", () => {
    const tell = (isEnded: boolean) => (story: Story.Story) => {
      const [one, other] = both(story)
      if (isEnded) {
        story.run(one)
        story.settle(one, ack)
      }
      story.run(other)
    }
    expect(breaks("order", tell(false), world("block"))).toBe(true)
    expect(breaks("order", tell(true), world("block"))).toBe(false)
  })

  it("a batch has them in order", () => {
    const tell = (isInOrder: boolean) => (story: Story.Story) => {
      const [one, other] = both(story)
      story.begin(...(isInOrder ? [one, other] : [other, one]))
    }
    const batches = world("block", { batch: { size: 2, wait: 0 } })
    expect(breaks("order", tell(true), batches)).toBe(false)
    expect(breaks("order", tell(false), batches)).toBe(true)
  })

  it("a batch may have the retry of a message after others that were sent before the retry", () => {
    const tell = (isInOrder: boolean) => (story: Story.Story) => {
      story.start("a1")
      story.start("b1")
      const [one, other] = [story.send(1), story.send(2)]
      const first = story.deliver(one, 1, "a1")
      story.ask(first, Story.retry(0))
      const copy = story.store(1, { process: "a1", of: first })
      story.back(first, "lease")
      const [again, next, retry] = [
        story.deliver(one, 1, "b1"),
        story.deliver(other, 2, "b1"),
        story.deliver(copy, 1, "b1")
      ]
      story.begin(...(isInOrder ? [again, next, retry] : [again, retry, next]))
    }
    const batches = world("resend", { batch: { size: 3, wait: 0 } })
    expect(breaks("order", tell(true), batches)).toBe(false)
    expect(breaks("order", tell(false), batches)).toBe(true)
  })

  it("no message of a batch ends if an earlier one is returned, unless retries go to the end", () => {
    const tell = (story: Story.Story) => {
      const [one, other] = both(story)
      const run = story.begin(one, other)
      story.ended(run)
      story.ask(one, retry(1000))
      story.ask(other, ack)
    }
    const batch = { size: 2, wait: 0 }
    expect(breaks("order", tell, world("block", { batch }))).toBe(true)
    expect(breaks("order", tell, world("resend", { batch }))).toBe(false)
  })

  it("a later message of a batch may be returned with an earlier one, whatever its verdict", () => {
    const tell = (first: typeof ack) => (story: Story.Story) => {
      const [one, other] = both(story)
      const run = story.begin(one, other)
      story.ended(run)
      story.ask(one, first)
      story.ask(other, release)
    }
    const batches = world("block", { batch: { size: 2, wait: 0 } })
    const isBroken = (first: typeof ack): boolean => {
      const story = Story.make()
      tell(first)(story)
      return Checker.check(batches, story.history).some(({ key, law }) => law === "precedence" && key === 2)
    }
    expect(isBroken(retry(1000))).toBe(false)
    expect(isBroken(ack)).toBe(true)
  })
})
