/** Letters as a file. */
import * as Effect from "effect/Effect"
import { Refusal } from "../refusal.ts"
import * as Alone from "../work/alone.ts"
import * as Export from "../work/export.ts"
import { selectionOf } from "./acting.ts"
import { placeOf, type Route } from "./route.ts"

/** The largest number of simultaneous exports, because each holds a page of letters. */
const most = 2

const tooMany = new Refusal({
  status: 409,
  detail: `${most} exports run already`,
  remedy: "Nothing was exported. Try again when one has ended"
})

/** Exports all letters, or those of a cause, to a file. It sends lines while it reads letters. */
export const exportRoute: Route = {
  method: "POST",
  needs: "bodies",
  answer: (asking, dependencies) =>
    Effect.gen(function* () {
      const located = yield* placeOf(asking.fields, dependencies)
      const { connection, place } = located
      const { jobs, looks, redact, turns } = dependencies
      const running = jobs.all().filter(({ ended, kind }) => kind === "export" && ended === undefined)
      if (running.length >= most) return yield* tooMany
      const selection = yield* selectionOf(asking, dependencies, located)
      const { body, work } = Export.make(connection, place.queue, selection, { redact, turn: turns(place) })
      const { operator } = asking.visit
      const { begun } = yield* jobs.begin(Alone.make({ looks, turns }, operator, work), operator)
      const time = new Date(begun).toISOString().slice(0, 19).replaceAll(":", "-")
      return { download: { name: `${place.queue}-${time}.jsonl`, body } }
    })
}
