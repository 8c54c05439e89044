/** Browsers: they show messages page by page, hold them, remove some, and return the rest. */
import { type Broker, type BrokerError, RetryPolicy } from "@requeue/core"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Case from "../Case.ts"
import * as Check from "../Check.ts"
import { checkKept } from "../internal/kept.ts"
import type { Lab } from "../Lab.ts"
import * as Needs from "../Needs.ts"
import * as Wait from "../Wait.ts"

const test = Case.inGroup("browsing")

const browse = ({ broker, queue }: Lab, options: Partial<Broker.BrowseOptions> = {}) => {
  const open = Check.present("admin.browse", broker.admin.browse)
  return open({ queue, retry: RetryPolicy.make(), from: "ready", limit: 1000, ...options })
}

const idOf = ({ delivery }: Broker.Delayed): string => delivery.metadata.id

const idsOf = (page: ReadonlyArray<Broker.Delayed>): ReadonlyArray<string> => page.map(idOf)

/** The deliveries of these messages. */
const those = (page: ReadonlyArray<Broker.Delayed>, ...ids: ReadonlyArray<string>) =>
  page.filter((each) => ids.includes(idOf(each))).map(({ delivery }) => delivery)

const isLoss = ({ reason }: BrokerError.BrokerError): boolean => reason === "ConnectionLost" || reason === "LeaseLost"

/** Asks for pages until all of these are shown. A browser that has lost what it held begins anew, and so does this. */
const showing = ({ next }: Broker.Browser, ids: ReadonlyArray<string>, count: number = ids.length) => {
  let shown: ReadonlyArray<Broker.Delayed> = []
  const page = Effect.matchEffect(next(count), {
    onSuccess: (some) => {
      Check.isTrue(`${count} messages or fewer`, some.length <= count, some.length)
      shown = [...shown, ...some]
      const found = new Set(idsOf(shown))
      return Effect.succeed(ids.every((id) => found.has(id)) ? shown : undefined)
    },
    onFailure: (error) => {
      shown = []
      return isLoss(error) ? Effect.succeed(undefined) : Effect.fail(error)
    }
  })
  return Wait.found(() => `${ids.join(" ")}; shown: ${idsOf(shown).join(" ")}`, page)
}

/** The messages that have come to a handler. */
const come = ({ runs }: Lab): ReadonlySet<string> => new Set(runs.map(({ id }) => id))

/** Starts a consumer, waits for these messages, and checks that no others come. */
const onlyCome = (lab: Lab, ...ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    yield* lab.start()
    yield* lab.until(`${ids.join(" ")} come`, () => ids.every((id) => come(lab).has(id)))
    yield* lab.quiet()
    Check.equal("these come", [...come(lab)].toSorted(), ids.toSorted())
  })

const fatesOf = (failures: ReadonlyArray<Broker.SettleFailure>) => failures.map(({ fate }) => fate)

const many = Array.from({ length: 250 }, (_, n) => String(n))

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
  test("what a browser removes is gone, and all the rest comes", function* (lab) {
    const from = lab.now()
    const ids = many.slice(0, 60)
    const isRemoved = (id: string): boolean => Number(id) % 3 !== 0
    yield* lab.send(...ids)
    yield* lab.untilPending({ ready: ids.length })
    const removal = Effect.gen(function* () {
      const browser = yield* browse(lab)
      const shown = yield* showing(browser, ids, 25)
      const failures = yield* browser.remove(those(shown, ...ids.filter(isRemoved)))
      return checkKept(lab, "removals that failed", fatesOf(failures), [], from)
    })
    if (!(yield* Effect.scoped(removal))) return
    yield* lab.untilPending({ ready: 20 })
    yield* onlyCome(lab, ...ids.filter((id) => !isRemoved(id)))
  }),
  test("pages are shown and removed in turn until the queue is empty", function* (lab) {
    const from = lab.now()
    yield* lab.send(...many)
    yield* lab.untilPending({ ready: many.length })
    const all = Effect.gen(function* () {
      const { next, remove } = yield* browse(lab, { limit: 50 })
      const removed: Array<string> = []
      const page = Effect.gen(function* () {
        const shown = yield* next(40)
        const failures = yield* remove(shown.map(({ delivery }) => delivery))
        removed.push(...idsOf(shown))
        if (!checkKept(lab, "removals that failed", fatesOf(failures), [], from)) return many
        return removed.length >= many.length ? removed : undefined
      })
      return yield* Wait.found("the last page", page)
    })
    const removed = yield* Effect.scoped(all)
    Check.equal("each once", removed.toSorted(), many.toSorted())
    yield* lab.untilEmpty
    yield* onlyCome(lab)
  }),
  test("a removal that is asked for twice is told as gone, or done, and disturbs no other", function* (lab) {
    const from = lab.now()
    yield* lab.send("a", "b", "c")
    yield* lab.untilPending({ ready: 3 })
    const removal = Effect.gen(function* () {
      const browser = yield* browse(lab)
      const shown = yield* showing(browser, ["a", "b", "c"])
      const first = yield* browser.remove(those(shown, "a"))
      const again = yield* browser.remove(those(shown, "a"))
      Check.isTrue("it is gone", again.length <= 1 && again.every(({ fate }) => fate === "gone"), fatesOf(again))
      const other = yield* browser.remove(those(shown, "b"))
      return checkKept(lab, "removals that failed", fatesOf([...first, ...other]), [], from)
    })
    if (!(yield* Effect.scoped(removal))) return
    yield* lab.untilPending({ ready: 1 })
    yield* onlyCome(lab, "c")
  }),
  test("a browser whose scope has closed removes what it says, and tells what it no longer holds as gone", function* (lab) {
    yield* lab.send("a", "b")
    yield* lab.untilPending({ ready: 2 })
    const closed = Effect.gen(function* () {
      const browser = yield* browse(lab)
      return { browser, shown: yield* showing(browser, ["a", "b"]) }
    })
    const { browser, shown } = yield* Effect.scoped(closed)
    yield* lab.untilPending({ ready: 2 })
    const [fate] = fatesOf(yield* browser.remove(those(shown, "a")))
    const comes = fate === "gone" ? ["a", "b"] : ["b"]
    yield* lab.start()
    yield* lab.until(`${comes.join(" ")} come`, () => comes.every((id) => come(lab).has(id)))
    yield* lab.quiet()
    if (fate === undefined) Check.isTrue("what is removed does not come", !come(lab).has("a"))
  }),
  test("an empty page is not the end: what comes later is shown", function* (lab) {
    const browser = yield* browse(lab)
    for (const id of ["a", "b"]) {
      Check.equal("shown", idsOf(yield* Effect.orElseSucceed(browser.next(10), () => [])), [])
      yield* lab.send(id)
      yield* showing(browser, [id])
    }
  }),
  test("a browser holds no more than its limit, says that there is more, and goes on when it has removed some", function* (lab) {
    const ids = ["a", "b", "c"]
    yield* lab.send(...ids)
    yield* lab.untilPending({ ready: 3 })
    const browser = yield* browse(lab, { limit: 2 })
    const shown: Array<Broker.Delayed> = []
    const page = Effect.map(browser.next(10), (some) => {
      shown.push(...some)
      return shown.length >= 2 ? true : undefined
    })
    yield* Wait.found("two messages", page)
    const more = yield* Effect.option(browser.next(10))
    // A browser that has lost them shows them again.
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
  test(
    "a browser whose connection breaks fails, then shows again what it has not removed, by the same names",
    function* (lab) {
      yield* lab.send("a", "b", "c")
      yield* lab.untilPending({ ready: 3 })
      const browser = yield* browse(lab)
      const shown = yield* showing(browser, ["a", "b", "c"])
      const nameOf = (each: Broker.Delayed) => browser.identify(each.delivery)
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
    "delayed messages are shown with the time at which they are due, and come at that time",
    function* (lab) {
      const delays = { near: 10 * lab.unit, far: 1000 * lab.unit }
      const begun = lab.now()
      yield* lab.start()
      yield* lab.sendDelayed("near", delays.near)
      yield* lab.sendDelayed("far", delays.far)
      const sent = lab.now()
      const seen = yield* Effect.scoped(
        Effect.flatMap(browse(lab, { from: "delayed" }), (browser) => showing(browser, ["far"], 10))
      )
      // On a slow machine, one of them may be due already.
      for (const { delivery, due = Number.NaN } of seen) {
        const delay = delays[delivery.metadata.id === "near" ? "near" : "far"]
        Check.isTrue("it is due by then", due >= begun + delay && due <= sent + delay, { due, begun, sent, delay })
      }
      yield* lab.untilRuns(1)
      yield* lab.quiet()
      Check.equal(
        "runs",
        lab.runs.map(({ attempts, id }) => `${id} ${attempts}`),
        ["near 1"]
      )
      Check.isTrue("it is not early", lab.runs[0]!.at >= begun + delays.near, lab.runs)
    },
    Needs.delayedMessages
  ),
  test(
    "delayed messages that a browser removes are gone, and the others wait for their time",
    function* (lab) {
      const ids = ["a", "b", "c"]
      const opened = browse(lab, { from: "delayed" })
      for (const id of ids) yield* lab.sendDelayed(id, 1000 * lab.unit)
      yield* lab.start()
      const removal = Effect.gen(function* () {
        const browser = yield* opened
        // A page has all three, else the first are with the broker again when the last is shown.
        const page = Effect.map(browser.next(10), (some) => (those(some, "b").length === 1 ? some : undefined))
        return yield* browser.remove(those(yield* Wait.found("the page with b", page), "b"))
      })
      const failures = yield* Effect.scoped(removal)
      // A broker that is slow may have it back before it is removed.
      if (failures.length > 0) return
      const left = yield* Effect.scoped(Effect.flatMap(opened, (browser) => showing(browser, ["a", "c"], 10)))
      Check.equal("left", idsOf(left).toSorted(), ["a", "c"])
      Check.equal("runs", [...come(lab)], [])
    },
    Needs.delayedMessages
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
      Check.equal("fates", fatesOf(failures), ["gone"])
    },
    Needs.delayedMessages
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
