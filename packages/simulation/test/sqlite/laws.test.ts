/** The laws of files: leases, power cuts, and transactions of programs. */
import { describe, expect, it } from "vitest"
import type { Version } from "../../src/Scenario.ts"
import * as Checker from "../../src/check/Checker.ts"
import * as Story from "../Story.ts"

const { ack, asked, retry } = Story

/** The laws that a story breaks, each once. */
const broken = (tell: (story: Story.Story) => void) => {
  const story = Story.make()
  tell(story)
  const world = Story.scenario({ kind: "sqlite", lease: 5000 })
  return [...new Set(Checker.check(world, story.history).map(({ law }) => law))]
}

/** A message that is sent, and its first delivery to `a1`. */
const first = (story: Story.Story) => {
  story.start("a1")
  const copy = story.send(1)
  return { copy, delivery: story.deliver(copy, 1, "a1") }
}

/** A run that acks its message in a transaction. */
const enlist = (story: Story.Story, delivery: number): void => {
  const run = story.begin(delivery)
  story.say({ _tag: "Enlisted", process: "a1", run, deliveries: [delivery], isRefused: false })
  story.ended(run)
}

interface Parts {
  readonly acked?: ReadonlyArray<number>
  readonly rows?: ReadonlyArray<number>
  readonly sends?: ReadonlyArray<number>
}

const commit = (story: Story.Story, { acked = [], rows = [], sends = [] }: Parts): void =>
  story.say({ _tag: "Committed", process: "a1", acked, rows, sends })

const reboot = (story: Story.Story, isFull: boolean, lost: Omit<Parts, "acked"> & { revived?: Array<number> } = {}) => {
  const { revived = [], rows = [], sends = [] } = lost
  story.say({ _tag: "Rebooted", revived, rows, sends, isFull })
}

const lostRetry = (story: Story.Story, delivery: number): void => {
  story.ask(delivery, retry(1000))
  story.answer(delivery, retry(1000), "lost")
}

describe("leases", () => {
  it("a message that two processes have", () => {
    const tell = (isOver: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.start("b1")
      story.wait(5000)
      if (isOver) story.back(delivery, "lease")
      story.deliver(copy, 1, "b1")
    }
    expect(broken(tell(true))).toEqual([])
    expect(broken(tell(false))).toEqual(["leases"])
  })

  it("a lease that ends early", () => {
    const tell = (early: number) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.say({ _tag: "Back", copy, key: 1, delivery, due: 0, why: "lease", ...(early === 0 ? {} : { early }) })
    }
    expect(broken(tell(0))).toEqual([])
    expect(broken(tell(1))).toEqual(["leases"])
  })
})

describe("durability", () => {
  it("a confirmed message that a power cut loses", () => {
    const tell = (isConfirmed: boolean) => (story: Story.Story) => {
      story.say({ _tag: "Sending", key: 1, id: "m1", queue: "work", earliest: 0 })
      const copy = story.store(1)
      if (isConfirmed) story.say({ _tag: "Sent", key: 1 })
      story.gone(copy, 1, "forgotten")
      reboot(story, true)
    }
    expect(broken(tell(false))).toEqual([])
    expect(broken(tell(true))).toEqual(["durability"])
  })

  it("not a retry that it undoes", () => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      story.run(delivery, { error: "error" })
      const next = story.settle(delivery, retry(1000))
      story.kill("a1")
      story.say({ _tag: "Back", copy, key: 1, delivery: undefined, due: 0, why: "restart" })
      story.gone(next, 1, "forgotten")
      reboot(story, true)
      story.start("a2")
      const again = story.deliver(copy, 1, "a2", 1)
      story.run(again)
      story.settle(again, ack)
      story.say({ _tag: "Calm" })
      story.end()
    }
    expect(broken(tell)).toEqual([])
  })
})

describe("transactions", () => {
  it.each([
    [{ acked: 1, rows: 1, sends: 1 }, []],
    [{ acked: 0, rows: 1, sends: 1 }, ["transactions"]],
    [{ acked: 1, rows: 0, sends: 1 }, ["transactions"]],
    [{ acked: 1, rows: 1, sends: 0 }, ["transactions"]]
  ])("commit all or nothing: %o", (parts, laws) => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      enlist(story, delivery)
      const some = (count: number) => [delivery].slice(0, count)
      if (parts.acked > 0) story.gone(copy, 1, "transaction", delivery)
      commit(story, { acked: some(parts.acked), rows: some(parts.rows), sends: some(parts.sends) })
      lostRetry(story, delivery)
    }
    expect(broken(tell)).toEqual(laws)
  })

  it("ack for a process whose lease is over", () => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      enlist(story, delivery)
      story.wait(5000)
      story.back(delivery, "lease")
      story.start("b1")
      const other = story.deliver(copy, 1, "b1")
      story.gone(copy, 1, "transaction", other)
      commit(story, { acked: [other], rows: [delivery], sends: [delivery] })
      lostRetry(story, delivery)
    }
    expect(broken(tell)).toEqual(["transactions"])
  })

  it("are followed by a settlement that is taken", () => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      enlist(story, delivery)
      story.gone(copy, 1, "transaction", delivery)
      commit(story, { acked: [delivery], rows: [delivery], sends: [delivery] })
      story.ask(delivery, retry(1000))
      story.store(1, { process: "a1", of: delivery, due: 1000 })
      story.answer(delivery, retry(1000))
    }
    expect(broken(tell)).toEqual(["transactions"])
  })

  it.each([
    [true, ["transactions"]],
    [false, []]
  ])("are undone by a power cut, as one, unless they are synced: %o", (isFull, laws) => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      enlist(story, delivery)
      story.gone(copy, 1, "transaction", delivery)
      commit(story, { acked: [delivery], rows: [delivery], sends: [delivery] })
      story.kill("a1")
      story.say({ _tag: "Back", copy, key: 1, delivery: undefined, due: 0, why: "restart" })
      reboot(story, isFull, { revived: [delivery], rows: [delivery], sends: [delivery] })
    }
    expect(broken(tell)).toEqual(laws)
  })

  it("are undone by a power cut, if the lease went to another delivery before the commit", () => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      enlist(story, delivery)
      story.back(delivery, "asked")
      const other = story.deliver(copy, 1, "a1", 1)
      story.gone(copy, 1, "transaction", other)
      commit(story, { acked: [other], rows: [delivery], sends: [delivery] })
      story.kill("a1")
      story.say({ _tag: "Back", copy, key: 1, delivery: undefined, due: 0, why: "restart" })
      reboot(story, false, { revived: [other], rows: [delivery], sends: [delivery] })
      story.start("a2")
      const again = story.deliver(copy, 1, "a2", 2)
      const run = story.begin(again)
      story.say({ _tag: "Enlisted", process: "a2", run, deliveries: [again], isRefused: false })
      story.ended(run)
      story.gone(copy, 1, "transaction", again)
      story.say({ _tag: "Committed", process: "a2", acked: [again], rows: [again], sends: [again] })
    }
    expect(broken(tell)).toEqual([])
  })

  it("lose a row, and neither its ack nor its send", () => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      enlist(story, delivery)
      story.gone(copy, 1, "transaction", delivery)
      commit(story, { acked: [delivery], rows: [delivery], sends: [delivery] })
      story.kill("a1")
      reboot(story, false, { rows: [delivery] })
    }
    expect(broken(tell)).toEqual(["transactions"])
  })
})

describe("after an ack in a transaction", () => {
  it.each([
    ["a retry", retry(1000), []],
    ["an ack", ack, ["precedence"]],
    ["a release", asked("Release"), ["precedence"]]
  ])("its process asks for %s", (_, settlement, laws) => {
    const tell = (story: Story.Story) => {
      const { delivery } = first(story)
      enlist(story, delivery)
      story.settle(delivery, settlement)
    }
    expect(broken(tell)).toEqual(laws)
  })

  it("a message whose lease was lost is run again", () => {
    const tell = (story: Story.Story) => {
      const { copy, delivery } = first(story)
      enlist(story, delivery)
      story.wait(5000)
      story.back(delivery, "lease")
      lostRetry(story, delivery)
      const again = story.deliver(copy, 1, "a1")
      story.run(again)
      story.settle(again, ack)
    }
    expect(broken(tell)).toEqual([])
  })

  it("a message whose lease was lost does not wait for its retry", () => {
    const tell = (isRefused: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      enlist(story, delivery)
      if (isRefused) story.say({ _tag: "Enlisted", process: "a1", run: 0, deliveries: [delivery], isRefused })
      story.back(delivery, "lease")
      lostRetry(story, delivery)
      story.run(story.deliver(copy, 1, "a1"))
    }
    expect(broken(tell(false))).toEqual([])
    expect(broken(tell(true))).toContain("early")
  })

  it("what was decided stays decided over redeliveries if the ack was refused", () => {
    const letter = asked("DeadLetter", { reason: "permanent" })
    const tell = (isRefused: boolean) => (story: Story.Story) => {
      const { copy, delivery } = first(story)
      const run = story.begin(delivery)
      for (const refused of [false, isRefused])
        story.say({ _tag: "Enlisted", process: "a1", run, deliveries: [delivery], isRefused: refused })
      story.ended(run, { error: "permanent" })
      for (let last = delivery, n = 0; n < 3; n++) {
        story.ask(last, letter)
        story.back(last, "lease")
        story.answer(last, letter, "lost")
        last = story.deliver(copy, 1, "a1")
      }
    }
    expect(broken(tell(true))).toEqual([])
    expect(broken(tell(false))).toEqual(["precedence"])
  })
})

describe("shares", () => {
  /** The laws that a story breaks in which the messages 1 to 3 have these shares. */
  const brokenWith = (
    shares: ReadonlyArray<string | undefined>,
    shareLimits: Version["shareLimits"],
    tell: (story: Story.Story) => void
  ) => {
    const story = Story.make()
    tell(story)
    const sendings = shares.map((share, index) => ({ ...Story.sending(index + 1), ...(share && { share }) }))
    const world = Story.scenario({ kind: "sqlite", lease: 5000, sendings, version: { shareLimits, concurrency: 9 } })
    return [...new Set(Checker.check(world, story.history).map(({ law }) => law))]
  }

  it.each([
    [["s", "s"], { concurrency: 1 }, 0, ["shares"]],
    [["s", "s"], { concurrency: 2 }, 0, []],
    [["s", "t"], { concurrency: 1 }, 0, []],
    [[undefined, undefined], { concurrency: 1 }, 0, []],
    [["s", "s"], { rateLimit: { max: 1, per: 1000 } }, 1040, ["shares"]],
    [["s", "s"], { rateLimit: { max: 1, per: 1000 } }, 1050, []]
  ])("are delivered within their limits: %j, %j, after %i ms", (shares, limits, wait, laws) => {
    const tell = (story: Story.Story) => {
      story.start("a1", 9)
      const copies = [story.send(1), story.send(2)]
      story.deliver(copies[0]!, 1, "a1")
      story.wait(wait)
      story.deliver(copies[1]!, 2, "a1")
    }
    expect(brokenWith([...shares, "other"], limits, tell)).toEqual(laws)
  })

  it.each(["asked", "lease", "restart", "forgotten"] as const)(
    "have a place again when a message is back: %s",
    (why) => {
      const tell = (isBack: boolean) => (story: Story.Story) => {
        story.start("a1", 9)
        const copies = [story.send(1), story.send(2)]
        const delivery = story.deliver(copies[0]!, 1, "a1")
        story.wait(5000)
        const end = () => (why === "forgotten" ? story.gone(copies[0]!, 1, why) : story.back(delivery, why))
        if (isBack) end()
        story.deliver(copies[1]!, 2, "a1")
      }
      expect(brokenWith(["s", "s"], { concurrency: 1 }, tell(false))).toContain("shares")
      expect(brokenWith(["s", "s"], { concurrency: 1 }, tell(true))).not.toContain("shares")
    }
  )

  it("have a place again when a power cut has undone the copy that was delivered", () => {
    const tell = (isForgotten: boolean) => (story: Story.Story) => {
      story.start("a1", 9)
      const copies = [story.send(1), story.send(2)]
      story.deliver(copies[0]!, 1, "a1")
      if (isForgotten) story.gone(copies[0]!, 1, "forgotten")
      story.deliver(copies[1]!, 2, "a1")
    }
    expect(brokenWith(["s", "s"], { concurrency: 1 }, tell(false))).toContain("shares")
    expect(brokenWith(["s", "s"], { concurrency: 1 }, tell(true))).not.toContain("shares")
  })

  it("are not taken from repeatedly while another one waits", () => {
    const tell = (turns: number, order: ReadonlyArray<number>) => (story: Story.Story) => {
      story.start("a1", 9)
      const copies = order.map((key) => [story.send(key), key] as const)
      for (const [copy, key] of copies.slice(0, turns)) {
        story.wait(10)
        story.deliver(copy, key, "a1")
      }
    }
    const shares = ["s", "s", "s", "t"]
    expect(brokenWith(shares, undefined, tell(3, [1, 2, 3, 4]))).toEqual(["shares"])
    expect(brokenWith(shares, undefined, tell(2, [1, 2, 3, 4]))).toEqual([])
    expect(brokenWith(shares, undefined, tell(4, [1, 4, 2, 3]))).toEqual([])
  })
})
