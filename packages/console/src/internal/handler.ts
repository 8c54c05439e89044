/** Turns requests into responses. */
import { Log } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as Assets from "./assets.ts"
import * as Dependencies from "./dependencies.ts"
import * as FormBody from "./guard/formBody.ts"
import * as FormToken from "./guard/formToken.ts"
import * as Gate from "./guard/gate.ts"
import { layout } from "./pages/layout.ts"
import { refused } from "./pages/refused.ts"
import { type Paths, routes } from "./paths.ts"
import { Refusal } from "./refusal.ts"
import * as Responses from "./responses.ts"
import { mark } from "../Redaction.ts"
import * as Shown from "./shown.ts"
import type { Route } from "./routes/route.ts"
import * as Table from "./routes/table.ts"
import type { Live, Reply, Visit } from "./visit.ts"
import type { Trouble } from "./work/connections.ts"

/** The options of a handler. */
export interface Options extends Dependencies.Options {
  readonly paths: Paths
  readonly gate: Omit<Gate.Options, "token">
}

/** The context of a request. */
interface Following {
  readonly from: Gate.Client
  readonly now: number
  readonly query: URLSearchParams
  /** Is called when the operator is known. */
  readonly know: (visit: Visit) => void
}

/** The largest number of open streams: of all clients, and of one operator at one client. */
const mostStreams = { all: 100, each: 10 }

const nobody = (paths: Paths, now: number): Visit => ({
  paths,
  now,
  operator: "",
  may: new Set(),
  token: "",
  shown: (cause) => cause,
  shownId: (id) => id
})

const notFound = new Refusal({ status: 404, detail: "there is no such page", remedy: "Go back to the overview" })

const closed = new Refusal({
  status: 503,
  detail: "this console is closing",
  remedy: "Try again when the console is back"
})

const tooMany = new Refusal({ status: 503, detail: "too many pages are open", remedy: "Close some of them" })

/** Turns replies into responses, and limits the open streams. */
const responder = (assets: Assets.Assets, run: Responses.Run, closing: AbortSignal) => {
  const streams = new Set<{ readonly client: string }>()
  const open = (live: Live, client: string): Effect.Effect<Response, Refusal> => {
    const own = [...streams].filter((each) => each.client === client)
    if (streams.size >= mostStreams.all || own.length >= mostStreams.each) return Effect.fail(tooMany)
    const stream = { client }
    streams.add(stream)
    return Effect.succeed(Responses.events(live, { run, closing, onEnd: () => void streams.delete(stream) }))
  }
  return (visit: Visit, reply: Reply, client: string, isHead: boolean): Effect.Effect<Response, Refusal> => {
    if ("page" in reply) return Effect.succeed(Responses.page(layout(visit, reply.page, assets), reply.status))
    if ("download" in reply) return Effect.succeed(Responses.download(reply.download))
    if ("to" in reply) return Effect.succeed(Responses.seeOther(reply.to))
    return isHead ? Effect.succeed(Responses.stream(null)) : open(reply.live, client)
  }
}

/** Answers with a page if a request fails. */
const told = (
  answer: Effect.Effect<Response, Refusal | Trouble>,
  visit: () => Visit,
  assets: Assets.Assets
): Effect.Effect<Response> =>
  answer.pipe(
    Effect.catchTag("Trouble", ({ broker, message }) =>
      Effect.fail(new Refusal({ status: 502, detail: `${broker} does not answer: ${message}`, remedy: "Try again" }))
    ),
    Effect.catchTag("Refusal", (refusal) => {
      const body = layout(visit(), refused(visit(), refusal), assets)
      return Effect.succeed(Responses.page(body, refusal.status, refusal.headers))
    }),
    Effect.catchCause((cause) => {
      const detail = "the console failed; the log has the error"
      const body = layout(visit(), refused(visit(), { status: 500, detail, remedy: "Please report the error" }), assets)
      return Effect.as(Log.error("a request failed", {}, cause), Responses.page(body, 500))
    })
  )

/** Makes a handler, which lives until the scope closes. */
export const make = (options: Options) =>
  Effect.gen(function* () {
    const { brokers, paths } = options
    // A letter of one broker may quote secrets of another.
    const redact = Shown.guarded(
      options.redact,
      brokers.flatMap(({ secrets }) => secrets)
    )
    const token = FormToken.make()
    const gate = Gate.make({ ...options.gate, token })
    const assets = Assets.make()
    const dependencies = yield* Dependencies.make({ ...options, redact })
    const run = Effect.runPromiseWith(yield* Effect.context())
    const closing = new AbortController()
    // Added last, so it runs first when the scope closes: no page shows the ends of jobs then.
    yield* Effect.addFinalizer(() => Effect.sync(() => closing.abort()))
    const respond = responder(assets, run, closing.signal)

    const follow = (route: Route, request: Request, { from, know, now, query }: Following) =>
      Effect.gen(function* () {
        const { client, may, operator } = yield* gate.admit(request, from, route.needs, now)
        const visit: Visit = {
          paths,
          operator,
          may,
          now,
          token: token.of(operator, now),
          shown: (cause, place) => Shown.cause(redact, cause, place),
          shownId: (id, place) => Shown.left(redact, { headers: {}, id }, place).id ?? mark
        }
        know(visit)
        const fields = route.method === "POST" ? yield* FormBody.of(request, route.formLimit) : query
        const wrong = route.method === "POST" ? gate.verify(operator, fields.get(FormToken.field), now) : undefined
        if (wrong !== undefined) return yield* wrong
        const reply = yield* route.answer({ visit, fields, signal: request.signal }, dependencies)
        return yield* respond(visit, reply, client, request.method === "HEAD")
      })

    const answer = (request: Request, client: Gate.Client, now: number, know: Following["know"]) =>
      Effect.gen(function* () {
        if (closing.signal.aborted) return yield* closed
        const refusal = gate.enter(request, client, now)
        if (refusal !== undefined) return yield* refusal
        const { pathname, searchParams } = new URL(request.url)
        if (!`${pathname}/`.startsWith(`${paths.base}/`)) return yield* notFound
        const path = pathname.slice(paths.base.length) || "/"
        const method = request.method === "HEAD" ? "GET" : request.method
        const file = Object.values(assets).find(({ name }) => path === `${routes.assets}${name}`)
        if (file !== undefined && method === "GET") return Responses.asset(file)
        const found = Table.at(path)
        const route = found.find((each) => each.method === method)
        if (route !== undefined) {
          return yield* follow(route, request, { from: client, know, now, query: searchParams })
        }
        if (found.length === 0) return yield* notFound
        const allow = found.map((each) => each.method).join(", ")
        return yield* new Refusal({
          status: 405,
          detail: `${path} accepts ${allow}`,
          remedy: "Go back",
          headers: { allow }
        })
      })

    return (request: Request, client: Gate.Client, now: number): Effect.Effect<Response> =>
      Effect.suspend(() => {
        let visit = nobody(paths, now)
        const known = answer(request, client, now, (other) => void (visit = other))
        return told(known, () => visit, assets)
      })
  })
