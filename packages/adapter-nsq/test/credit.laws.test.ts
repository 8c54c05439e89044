/** Laws of the credit and of what sessions count against it, and ways to break them that they find. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Laws from "./creditLaws.ts"

/** Returns the first plan that breaks a law, or `undefined`. Without a seed, each call tries other plans. */
const broken = async ({ live }: typeof Laws, numRuns: number, seed?: number) => {
  const { counterexample, errorInstance } = await fc.check(fc.asyncProperty(Laws.plans, live), {
    numRuns,
    endOnFailure: numRuns > 2000,
    ...(seed === undefined ? {} : { seed })
  })
  return counterexample === null ? undefined : { plan: counterexample[0], why: String(errorInstance) }
}

/** Plans that must not break a sound credit. */
const plans = process.env["REQUEUE_CAMPAIGNS"] === "1" ? 20_000 : 500

it("no credit leaks, none is used twice, and no connection is left unheard", async () =>
  assert.isUndefined(await broken(Laws, plans)))

it.each([
  [
    "a handler keeps the credit of a lease that nsqd refuses to extend, also when the connection is lost",
    2,
    "put 0/1, credit 1/1, steal 0/3, extend 0/1, cut 0/1"
  ],
  [
    "no other connection gets what a handler of a lost one has, when the core is told that it is lost",
    2,
    "put 0/1, credit 1/1, cut 0/1, connect 0/1"
  ],
  [
    "no other connection gets what a handler of a lost one has, when its lease cannot be extended",
    2,
    "put 0/1, credit 1/1, cut 0/1, extend 0/1"
  ],
  [
    "the credit lies where the work is while others have just delivered",
    5,
    "put 0/1, credit 2/1, settle 0/1, rest 0/1, tick 0/1, put 0/1, settle 0/1"
  ],
  [
    "the credit lies where the work is when others have waited for long",
    3,
    "put 2/2, credit 3/1, steal 0/3, tick 0/1, put 0/1, tick 0/1, put 2/1"
  ],
  [
    "the credit lies where the work is after nsqd has sent a message in the place of one that it took back",
    2,
    "credit 3/1, tick 0/1, put 0/3, steal 0/3"
  ]
])("%s", (_, count, steps) => Laws.live({ count, steps: Laws.parse(steps) }))

/** The whole of a tick. */
const turning = "distribute(seen, seen.free <= 0 && seen.open.some((member) => isStarved(member, seen.now)) ? 1 : 0)"

describe("a credit is found that", () => {
  it.each([
    [
      "keeps that of a copy which fails after its message has come again",
      "consume/held",
      "else onLost()",
      "else if (!receipts.has(receipt.id)) onLost()"
    ],
    ["keeps that of a lease which has ended", "consume/held", "return true\n      onLost()", "return true"],
    [
      "keeps that of what nsqd refuses to extend",
      "consume/held",
      "receipt.leaseEnds = -Infinity",
      "receipts.delete(id)"
    ],
    [
      "counts a message twice that comes again",
      "consume/session",
      "if (held.add(receipt)) membership?.arrived()",
      "held.add(receipt)\n      membership?.arrived()"
    ],
    [
      "keeps that of what is settled",
      "consume/session",
      "// After the command, because it may write a RDY.\n      membership?.settled()",
      ""
    ],
    [
      "keeps that of a connection which is left",
      "consume/credit",
      "members.delete(member)\n      distribute()",
      "distribute()"
    ],
    [
      "gives that again which handlers of a lost connection have",
      "consume/credit",
      "member.isLost = true\n      distribute()",
      "members.delete(member)\n      distribute()"
    ],
    [
      "gives that again which handlers of a lost connection have, before the core is told of a lease",
      "settle/settle",
      "session.touch(receiptOf(delivery)))",
      "session.touch(receiptOf(delivery)) && !receiptOf(delivery).session.take(receiptOf(delivery)))"
    ],
    [
      "gives that again which handlers of a lost connection have, before the core is told",
      "consume/session",
      "onReconnect((delivery) => receiptOf(delivery).session === session)\n      membership?.leave()",
      "membership?.leave()\n      onReconnect((delivery) => receiptOf(delivery).session === session)"
    ],
    ["is used twice while it moves", "consume/credit", "a.by - b.by", "b.by - a.by"],
    ["leaves connections unheard", "consume/credit", "return now - waitsSince(member)", "return 0"],
    ["does not move", "consume/credit", turning, ""],
    ["lies where no work is", "consume/credit", "open.some((member) => isSaturated(member, now, moment))", "false"],
    [
      "is given to more who have nothing than to one",
      "consume/distributeRdy",
      "index === heard || demands[index]!.isBusy",
      "index === heard || byNeed.length > 0"
    ],
    ["stops moving too early", "consume/credit", "quietSince !== undefined && ", "quietSince === undefined || "],
    ["withholds some for ever", "consume/credit", turning, "distribute(seen, 1)"],
    ["counts what is in flight as free", "consume/distributeRdy", "let free = credit - held", "let free = credit"]
  ])("%s", async (_, file, text, replacement) => {
    const patch = { file: `${file}.ts`, text, replacement }
    const patched: typeof Laws = await import(
      /* @vite-ignore */ `./creditLaws.ts?patch=${encodeURIComponent(JSON.stringify(patch))}`
    )
    // With a seed, a mutant dies at the same plan in every run, or in none.
    assert.isDefined(await broken(patched, 20_000, 1))
  })
})
