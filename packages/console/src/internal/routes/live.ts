/** Parts of pages that change, as they change. */
import * as Effect from "effect/Effect"
import { causes } from "../pages/deadLetters.ts"
import { progress } from "../pages/jobs.ts"
import { Refusal } from "../refusal.ts"
import { jobOf } from "./reading.ts"
import { placeOf, type Route } from "./route.ts"

/** A look that runs. */
export const liveLookRoute: Route = {
  method: "GET",
  needs: "view",
  answer: ({ fields, visit }, dependencies) =>
    Effect.gen(function* () {
      const { place } = yield* placeOf(fields, dependencies)
      const first = dependencies.looks.of(place)
      if (first === undefined) {
        return yield* new Refusal({ status: 404, detail: "nobody has looked", remedy: "Look again" })
      }
      const read = (now: number) => {
        const look = dependencies.looks.of(place) ?? first
        return { body: causes({ ...visit, now }, look), isOver: look.ended !== undefined }
      }
      return { live: { read } }
    })
}

/** A job that runs. */
export const liveJobRoute: Route = {
  method: "GET",
  needs: "view",
  answer: ({ fields, visit }, dependencies) =>
    Effect.map(jobOf(fields, dependencies), (first) => {
      const read = (now: number) => {
        const job = dependencies.jobs.of(first.id) ?? first
        return { body: progress({ ...visit, now }, job), isOver: job.ended !== undefined }
      }
      return { live: { read } }
    })
}
