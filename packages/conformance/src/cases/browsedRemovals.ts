/** Browsers: they remove the chosen messages, and no others. */
import type { Broker } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { browse, come, fatesOf, idOf, isLoss, many, onlyCome, showing, those } from "../internal/browsers.ts"
import { checkKept } from "../internal/kept.ts"
import * as Needs from "../Needs.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("browsing")

export const cases: ReadonlyArray<Case.Case> = [
  test("what a browser removes, page by page, is gone, and all the rest comes", function* (lab) {
    const from = lab.now()
    const isRemoved = (id: string): boolean => Number(id) % 3 !== 0
    yield* lab.send(...many)
    yield* lab.untilPending({ ready: many.length })
    const removal = Effect.gen(function* () {
      // There is room for all that stay, but not for all messages.
      const { next, remove } = yield* browse(lab, { limit: 150 })
      const shown = new Set<string>()
      const page = Effect.gen(function* () {
        const some = yield* Effect.catchIf(next(40), isLoss, () => Effect.succeed([]))
        for (const each of some) shown.add(idOf(each))
        const failures = yield* remove(those(some, ...many.filter(isRemoved)))
        if (!checkKept(lab, "removals that failed", fatesOf(failures), [], from)) return false
        return shown.size === many.length ? true : undefined
      })
      return yield* Wait.found("all messages", page)
    })
    if (!(yield* Effect.scoped(removal))) return
    const rest = many.filter((id) => !isRemoved(id))
    yield* lab.untilPending({ ready: rest.length })
    yield* onlyCome(lab, ...rest)
  }),
  test("a removal that is requested twice is reported as lost, or done, and affects no other", function* (lab) {
    const from = lab.now()
    yield* lab.send("a", "b", "c")
    yield* lab.untilPending({ ready: 3 })
    const removal = Effect.gen(function* () {
      const browser = yield* browse(lab)
      const shown = yield* showing(browser, ["a", "b", "c"])
      const first = yield* browser.remove(those(shown, "a"))
      const again = yield* browser.remove(those(shown, "a"))
      Check.isTrue("it is gone", again.length <= 1 && again.every(({ fate }) => fate === "lost"), fatesOf(again))
      const other = yield* browser.remove(those(shown, "b"))
      return checkKept(lab, "removals that failed", fatesOf([...first, ...other]), [], from)
    })
    if (!(yield* Effect.scoped(removal))) return
    yield* lab.untilPending({ ready: 1 })
    yield* onlyCome(lab, "c")
  }),
  test("a browser whose scope has closed removes what it says, and reports messages that it no longer holds as lost", function* (lab) {
    yield* lab.send("a", "b")
    yield* lab.untilPending({ ready: 2 })
    const closed = Effect.gen(function* () {
      const browser = yield* browse(lab)
      return { browser, shown: yield* showing(browser, ["a", "b"]) }
    })
    const { browser, shown } = yield* Effect.scoped(closed)
    yield* lab.untilPending({ ready: 2 })
    const [fate] = fatesOf(yield* browser.remove(those(shown, "a")))
    const comes = fate === "lost" ? ["a", "b"] : ["b"]
    yield* lab.start()
    yield* lab.until(`${comes.join(" ")} come`, () => comes.every((id) => come(lab).has(id)))
    yield* lab.quiet()
    if (fate === undefined) Check.isTrue("what is removed does not come", !come(lab).has("a"))
  }),
  test(
    "a browser whose connection breaks fails, then shows again what it has not removed, by the same names",
    function* (lab) {
      yield* lab.send("a", "b", "c")
      yield* lab.untilPending({ ready: 3 })
      const browser = yield* browse(lab)
      const shown = yield* showing(browser, ["a", "b", "c"])
      const nameOf = (each: Broker.BrowsedMessage) => browser.identify(each.delivery)
      const names = new Map(shown.map((each) => [idOf(each), nameOf(each)]))
      const failures = yield* browser.remove(those(shown, "a"))
      yield* lab.harness.cutConnections!
      const loss = Effect.matchEffect(browser.next(10), {
        onSuccess: () => Effect.succeed(undefined),
        onFailure: (error) => (isLoss(error) ? Effect.succeed(true) : Effect.fail(error))
      })
      yield* Wait.found("the loss", loss, { within: lab.recovery })
      const found = new Map<string, string | undefined>()
      const again = Effect.map(
        Effect.orElseSucceed(browser.next(10), () => []),
        (page) => {
          for (const each of page) found.set(idOf(each), nameOf(each))
          return found.has("b") && found.has("c") ? true : undefined
        }
      )
      yield* Wait.found("what was not removed", again, { within: lab.recovery })
      for (const id of ["b", "c"]) Check.equal(`the name of ${id}`, found.get(id), names.get(id))
      if (failures.length === 0) Check.isTrue("what was removed is not shown again", !found.has("a"))
    },
    Needs.boundConnections
  ),
  test(
    "a browser has returned its page of delayed messages when it shows the next",
    function* (lab) {
      yield* lab.sendDelayed("a", 1000 * lab.unit)
      yield* lab.sendDelayed("b", 1000 * lab.unit)
      const browser = yield* browse(lab, { from: "delayed" })
      const page = Effect.map(browser.next(1), ([first]) => first)
      const first = yield* Wait.found("a page", page)
      yield* browser.next(1)
      const failures = yield* browser.remove([first.delivery])
      Check.equal("fates", fatesOf(failures), ["lost"])
    },
    Needs.delayedMessages
  )
]
