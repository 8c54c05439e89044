/** Parts of pages that change, as they change. */
import * as Effect from "effect/Effect"
import { causes } from "../pages/deadLetters.ts"
import { progress } from "../pages/jobs.ts"
import { parts } from "../pages/overview.ts"
import { Refusal } from "../refusal.ts"
import { jobOf } from "./reading.ts"
import { placeOf, type Route } from "./route.ts"

/** All queues. It changes for as long as somebody watches. */
export const liveOverviewRoute: Route = {
  method: "GET",
  needs: "view",
  answer: ({ visit }, { overviews }) => {
    const read = (now: number) => {
      const brokers = overviews.map(({ watch }) => watch(now))
      return { parts: parts({ ...visit, now }, brokers), isOver: false }
    }
    // A page that was open while the console began anew has asked nobody.
    const asked = Effect.forEach(overviews, ({ look }) => look, { concurrency: "unbounded" })
    return Effect.as(asked, { live: { read } })
  }
}

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
      let last = first
      const read = (now: number) => {
        const look = dependencies.looks.of(place)
        last = look ?? last
        // One that is forgotten has ended, whether somebody saw that or not.
        return { body: causes({ ...visit, now }, last), isOver: look === undefined || look.ended !== undefined }
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
      let last = first
      const read = (now: number) => {
        const job = dependencies.jobs.of(first.id)
        last = job ?? last
        return { body: progress({ ...visit, now }, last), isOver: job === undefined || job.ended !== undefined }
      }
      return { live: { read } }
    })
}
