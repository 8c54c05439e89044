/** Streams of the changing parts of pages. */
import * as Effect from "effect/Effect"
import { causes } from "../pages/deadLetters.ts"
import { progress } from "../pages/jobs.ts"
import { parts } from "../pages/overview.ts"
import { Refusal } from "../refusal.ts"
import { jobOf } from "./reading.ts"
import { placeOf, type Route } from "./route.ts"

/** Streams the overview. The stream has no end. */
export const liveOverviewRoute: Route = {
  method: "GET",
  needs: "view",
  answer: ({ visit }, { overviews }) => {
    const read = (now: number) => {
      const brokers = overviews.map(({ watch }) => watch(now))
      return { parts: parts({ ...visit, now }, brokers), isOver: false }
    }
    // After a restart of the console, an open page has not asked the brokers yet.
    const asked = Effect.forEach(overviews, ({ look }) => look, { concurrency: "unbounded" })
    return Effect.as(asked, { live: { read } })
  }
}

/** Streams a running browse. */
export const liveLookRoute: Route = {
  method: "GET",
  needs: "view",
  answer: ({ fields, visit }, dependencies) =>
    Effect.gen(function* () {
      const { place } = yield* placeOf(fields, dependencies)
      const first = dependencies.looks.of(place)
      if (first === undefined) {
        return yield* new Refusal({ status: 404, detail: "there is no browse of this queue", remedy: "Browse again" })
      }
      let last = first
      const read = (now: number) => {
        const look = dependencies.looks.of(place)
        last = look ?? last
        // A forgotten browse has ended.
        return { body: causes({ ...visit, now }, last), isOver: look === undefined || look.ended !== undefined }
      }
      return { live: { read } }
    })
}

/** Streams a running job. */
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
