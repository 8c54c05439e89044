/** Browsers: they show messages page by page, hold them, and return them. */
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { browse, come, idOf, idsOf, many, onlyCome, showing } from "../internal/browsers.ts"
import { checkKept } from "../internal/kept.ts"
import * as Needs from "../Needs.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("browsing")

export const cases: ReadonlyArray<Case.Case> = [
  test("a browser shows each waiting message once, the oldest first where the broker has an order", function* (lab) {
    yield* lab.send(...many)
    yield* lab.untilPending({ ready: many.length })
    const browser = yield* browse(lab)
    const shown = yield* showing(browser, many, 100)
    Check.equal("each once", shown.length, many.length)
    if (lab.capabilities.ordered) Check.equal("the oldest first", idsOf(shown), many)
  }),
  test("what a browser has shown is in its queue again when its scope has closed", function* (lab) {
    yield* lab.send("a", "b", "c")
    yield* lab.untilPending({ ready: 3 })
    for (const time of ["once", "twice"]) {
      const shown = yield* Effect.scoped(Effect.flatMap(browse(lab), (browser) => showing(browser, ["a", "b"], 1)))
      Check.isTrue(time, shown.length >= 2)
      yield* lab.untilPending({ ready: 3, inFlight: 0 })
    }
    yield* onlyCome(lab, "a", "b", "c")
  }),
  test(
    "what a browser returns is in its old place, and has used up no attempt",
    function* (lab) {
      yield* lab.send("a", "b", "c")
      yield* lab.untilPending({ ready: 3 })
      const first = Effect.gen(function* () {
        const shown = yield* showing(yield* browse(lab), ["a", "b"])
        const attempts = new Set(shown.map(({ delivery }) => delivery.attempts))
        Check.equal("attempts", [...attempts], [1])
        yield* lab.send("d")
      })
      yield* Effect.scoped(first)
      yield* lab.untilPending({ ready: 4 })
      yield* lab.start()
      yield* lab.untilRuns(4)
      Check.equal(
        "runs",
        lab.runs.map(({ attempts, id }) => `${id} ${attempts}`),
        ["a 1", "b 1", "c 1", "d 1"]
      )
    },
    Needs.all(Needs.has("uncountedBrowse"), Needs.has("ordered"))
  ),
  test("a message that a browser holds goes to no consumer", function* (lab) {
    const from = lab.now()
    yield* lab.send("a", "b", "c")
    yield* lab.untilPending({ ready: 3 })
    const scope = yield* Scope.fork(yield* Effect.scope)
    yield* showing(yield* Scope.provide(browse(lab), scope), ["a", "b", "c"])
    yield* lab.start({ concurrency: 10 })
    yield* lab.send("d")
    yield* lab.until("d comes", () => come(lab).has("d"))
    checkKept(lab, "these come", [...come(lab)], ["d"], from)
    yield* Scope.close(scope, Exit.void)
    yield* lab.until("all come", () => come(lab).size === 4)
  }),
  test("an empty page is not the end: what comes later is shown", function* (lab) {
    const browser = yield* browse(lab)
    for (const id of ["a", "b"]) {
      Check.equal("shown", idsOf(yield* Effect.orElseSucceed(browser.next(10), () => [])), [])
      yield* lab.send(id)
      yield* showing(browser, [id])
    }
  }),
  test("a browser holds no more than its limit, reports that there is more, and continues when it has removed some", function* (lab) {
    const ids = ["a", "b", "c"]
    yield* lab.send(...ids)
    yield* lab.untilPending({ ready: 3 })
    const browser = yield* browse(lab, { limit: 2 })
    const shown: Array<Broker.BrowsedMessage> = []
    const page = Effect.map(browser.next(10), (some) => {
      shown.push(...some)
      return shown.length >= 2 ? true : undefined
    })
    yield* Wait.found("two messages", page)
    const more = yield* Effect.option(browser.next(10))
    // A browser that has lost its messages shows them again.
    if (more._tag === "None") return
    Check.equal("shown", shown.length + more.value.length, 2)
    Check.isTrue("there is more", !browser.browsed().isWhole)
    yield* browser.remove([shown[0]!.delivery])
    yield* showing(
      browser,
      ids.filter((id) => !idsOf(shown).includes(id)),
      10
    )
  }),
  test("a browser names each message, and a second browser names it the same", function* (lab) {
    const ids = ["a", "b", "c"]
    yield* lab.send(...ids)
    yield* lab.untilPending({ ready: 3 })
    const named = Effect.gen(function* () {
      const browser = yield* browse(lab)
      const shown = yield* showing(browser, ids)
      return new Map(shown.map((each) => [idOf(each), browser.identify(each.delivery)]))
    })
    const names = yield* Effect.scoped(named)
    const some = [...names.values()].filter((name) => name !== undefined)
    Check.equal("names", new Set(some).size, 3)
    yield* lab.untilPending({ ready: 3 })
    const again = yield* Effect.scoped(named)
    for (const id of ids) Check.equal(`the name of ${id}`, again.get(id), names.get(id))
  }),
  test("a browser that is interrupted while it asks for more returns all", function* (lab) {
    yield* lab.send(...many)
    yield* lab.untilPending({ ready: many.length })
    const interrupted = Effect.gen(function* () {
      const { next } = yield* browse(lab)
      yield* next(10)
      const another = yield* Effect.forkChild(next(100), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(another)
    })
    yield* Effect.scoped(interrupted)
    yield* lab.untilPending({ ready: many.length, inFlight: 0 })
  }),
  test(
    "a browser shows nothing of a queue that is missing, and makes none",
    function* (lab) {
      const queue = `${lab.queue}-nowhere`
      const shown = yield* Effect.scoped(Effect.flatMap(browse(lab, { queue }), ({ next }) => next(10)))
      Check.equal("shown", idsOf(shown), [])
      const { isMissing } = yield* lab.broker.admin.counts(queue)
      Check.isTrue("it is missing", isMissing === true)
    },
    Needs.has("tellsMissing")
  ),
  test(
    "where the broker cannot show delayed messages, to browse them is Unsupported",
    function* (lab) {
      const error = yield* Effect.flip(Effect.scoped(browse(lab, { from: "delayed" })))
      Check.equal("reason", error.reason, "Unsupported")
    },
    Needs.noDelayedMessages
  )
]
