/** Letters as a file. */
import * as Effect from "effect/Effect"
import { Refusal } from "../refusal.ts"
import * as Export from "../work/export.ts"
import { selectionOf } from "./acting.ts"
import { placeOf, type Route } from "./route.ts"

/** Exports that run at a time: each holds a page of letters. */
const most = 2

const refuse = (detail: string) =>
  new Refusal({ status: 409, detail, remedy: "Nothing was exported. Wait for its end" })

/** Writes letters to a file, those of a cause or all. The lines come while the letters are read. */
export const exportRoute: Route = {
  method: "POST",
  needs: "bodies",
  answer: (asking, dependencies) =>
    Effect.gen(function* () {
      const located = yield* placeOf(asking.fields, dependencies)
      const { connection, place } = located
      const { jobs, looks, redact, turns } = dependencies
      const look = looks.of(place)
      if (look !== undefined && look.ended === undefined) {
        return yield* refuse(`a look of ${look.operator} has the letters of ${place.queue}`)
      }
      const running = jobs.all().filter(({ ended, kind }) => kind === "export" && ended === undefined)
      if (running.length >= most) return yield* refuse(`${most} exports run already`)
      const selection = yield* selectionOf(asking, dependencies, located)
      const { body, work } = Export.make(connection, place.queue, selection, { redact, turn: turns(place) })
      const { begun } = yield* jobs.begin(work, asking.visit.operator)
      const time = new Date(begun).toISOString().slice(0, 19).replaceAll(":", "-")
      return { download: { name: `${place.queue}-${time}.jsonl`, body } }
    })
}
