/** The laws about settlements that the broker refuses, or cannot take, and about leases that end. */
import { describe, expect, it } from "vitest"
import * as Checker from "../src/check/Checker.ts"
import type { Scenario } from "../src/Scenario.ts"
import * as Story from "./Story.ts"

const broken = (tell: (story: Story.Story) => void, world: Scenario = Story.scenario()) => {
  const story = Story.make()
  tell(story)
  return [...new Set(Checker.check(world, story.history).map(({ law }) => law))]
}

/** A message that is delivered to `a1`. */
const first = (story: Story.Story, credit = 1): number => {
  story.start("a1", credit)
  const copy = story.send(1)
  story.wait(1)
  return story.deliver(copy, 1, "a1")
}

const letter = Story.deadLetter("permanent")

describe("a settlement that is refused", () => {
  const world = (until: number) =>
    Story.scenario({ refusals: [{ key: 1, of: "deadLetter", until, reason: "BodyTooLarge" }] })

  it("is taken with a copy that leaves out enough", () => {
    const tell = (story: Story.Story) => {
      const delivery = first(story)
      story.run(delivery, { error: "permanent" })
      for (const cut of [0, 1]) {
        const asked = { ...letter, cut }
        story.ask(delivery, asked)
        story.answer(delivery, asked, "rejected")
      }
    }
    expect(broken(tell, world(2))).toEqual([])
    expect(broken(tell, world(1))).toEqual(["smaller"])
  })

  it("takes no room of others", () => {
    const tell = (credit: number) => (story: Story.Story) => {
      const delivery = first(story)
      story.run(delivery, { error: "permanent" })
      story.ask(delivery, letter)
      story.answer(delivery, letter, "rejected")
      story.say({ _tag: "Credit", process: "a1", limit: credit }, { _tag: "Calm" })
      story.wait(100_000)
      story.end()
    }
    expect(broken(tell(2), world(5))).toEqual([])
    expect(broken(tell(1), world(5))).toEqual(["liveness"])
  })
})

describe("a settlement that the broker cannot take", () => {
  const tell = (wait: number, then: (story: Story.Story, delivery: number) => void) => (story: Story.Story) => {
    const delivery = first(story)
    story.run(delivery)
    story.ask(delivery, Story.ack)
    story.answer(delivery, Story.ack, "unknown")
    story.say({ _tag: "Calm" })
    story.wait(wait)
    then(story, delivery)
    story.wait(700_000)
    story.end()
  }

  it("is asked again, unless its delivery is lost", () => {
    const again = (story: Story.Story, delivery: number) => void story.settle(delivery, Story.ack)
    expect(broken(tell(120_000, again))).toEqual([])
    expect(broken(tell(700_000, again))).toEqual(["waiting"])
    const gone = (story: Story.Story, delivery: number) =>
      story.say({ _tag: "Reconnected", process: "a1", gone: [delivery] })
    expect(broken(tell(120_000, gone))).not.toContain("waiting")
  })
})

describe("a lease that could not be extended", () => {
  const lease = (story: Story.Story, delivery: number) => story.say({ _tag: "Lapsed", process: "a1", delivery })

  it("begins no handler", () => {
    const tell = (isLost: boolean) => (story: Story.Story) => {
      const delivery = first(story)
      if (isLost) lease(story, delivery)
      story.wait(1)
      story.begin(delivery)
    }
    expect(broken(tell(false), Story.scenario({ kind: "sqs", lease: 5000 }))).toEqual([])
    expect(broken(tell(true), Story.scenario({ kind: "sqs", lease: 5000 }))).toEqual(["lost"])
  })

  it("begins one with an earlier message of its group that runs again at once, unless that is lost too", () => {
    const tell = (groups: readonly [string, string], isHeld: boolean) => {
      const sendings = groups.map((group, index) => ({ ...Story.sending(index + 1), group }))
      const told = (story: Story.Story) => {
        story.start("a1", 2)
        const both = [1, 2].map((key) => story.deliver(story.send(key), key, "a1"))
        const given = both.map((delivery, index) => ({ key: index + 1, delivery, attempts: 1 }))
        story.ended(story.begin(...given), { error: "error" })
        for (const each of isHeld ? both.slice(1) : both) lease(story, each)
        story.begin(...given)
      }
      const version = { immediate: 1, batch: { size: 2, wait: 0 } }
      return broken(told, Story.scenario({ kind: "sqs", lease: 5000, fifo: "block", sendings, version }))
    }
    expect(tell(["g", "g"], true)).not.toContain("lost")
    expect(tell(["g", "h"], true)).toContain("lost")
    expect(tell(["g", "g"], false)).toContain("lost")
  })

  it("ends what is asked again, but not what had waited for the extension", () => {
    const tell = (wait: number) => (story: Story.Story) => {
      const delivery = first(story)
      story.run(delivery)
      story.ask(delivery, Story.ack)
      story.answer(delivery, Story.ack, "transient")
      lease(story, delivery)
      story.wait(wait)
      story.ask(delivery, Story.ack)
      story.answer(delivery, Story.ack, "lost")
    }
    expect(broken(tell(0), Story.scenario({ kind: "sqs", lease: 5000 }))).toEqual([])
    expect(broken(tell(1), Story.scenario({ kind: "sqs", lease: 5000 }))).toEqual(["lost"])
  })
})

describe("a retry that has brought its message back before it was answered", () => {
  const back = Story.retry(0)
  const tell = (then: (story: Story.Story, one: number, two: number) => void) => (story: Story.Story) => {
    story.start("a1", 2)
    const copy = story.send(1)
    const one = story.deliver(copy, 1, "a1")
    story.run(one, { error: "error" })
    story.ask(one, back)
    story.back(one, "asked")
    const two = story.deliver(copy, 1, "a1")
    story.answer(one, back, "unknown")
    then(story, one, two)
  }
  const world = Story.scenario({ kind: "sqs", lease: 5000, version: { backoff: [0] } })

  it("is over: the message is run, and nothing more is asked", () => {
    const runs = tell((story, _, two) => {
      story.run(two)
      story.settle(two, Story.ack)
    })
    expect(broken(runs, world)).toEqual([])
    expect(
      broken(
        tell((story, one) => story.ask(one, back)),
        world
      )
    ).toContain("anew")
    expect(
      broken(
        tell((story, _, two) => story.ask(two, back)),
        world
      )
    ).toContain("anew")
  })
})

it("a send waits for its time, though that is beyond the longest age", () => {
  const tell = (story: Story.Story) => {
    story.start("a1")
    const copy = story.send(1, 9000)
    story.wait(6000)
    story.begin(story.deliver(copy, 1, "a1"))
  }
  expect(broken(tell, Story.scenario({ version: { maxAge: 5000 } }))).toEqual(["early"])
})
