/** All routes by path. */
import { routes } from "../paths.ts"
import * as Acting from "./acting.ts"
import * as Editing from "./editing.ts"
import * as Delaying from "./delaying.ts"
import * as Exporting from "./exporting.ts"
import * as Live from "./live.ts"
import * as Looking from "./looking.ts"
import * as Queue from "./queue.ts"
import * as Reading from "./reading.ts"
import * as Telling from "./telling.ts"
import type { Route } from "./route.ts"

const all: ReadonlyArray<readonly [path: string, route: Route]> = [
  [routes.overview, Reading.overviewRoute],
  [routes.queue, Queue.queueRoute],
  [routes.deadLetters, Reading.deadLettersRoute],
  [routes.group, Reading.groupRoute],
  [routes.letter, Reading.letterRoute],
  [routes.letter, Looking.bodyRoute],
  [routes.jobs, Reading.jobsRoute],
  [routes.job, Reading.jobRoute],
  [routes.look, Looking.lookRoute],
  [routes.plan, Acting.planRoute],
  [routes.redrive, Acting.redriveRoute],
  [routes.purge, Acting.purgeRoute],
  [routes.events, Telling.eventsRoute],
  [routes.liveEvents, Telling.liveEventsRoute],
  [routes.export, Exporting.exportRoute],
  [routes.delayed, Delaying.delayedRoute],
  [routes.delayed, Delaying.lookRoute],
  [routes.purgeDelayed, Delaying.purgeRoute],
  [routes.stop, Acting.stopRoute],
  [routes.park, Acting.parkRoute],
  [routes.edit, Editing.editRoute],
  [routes.preview, Editing.previewRoute],
  [routes.send, Editing.sendRoute],
  [routes.liveLook, Live.liveLookRoute],
  [routes.liveJob, Live.liveJobRoute],
  [routes.liveOverview, Live.liveOverviewRoute]
]

/** Returns the routes of a path. */
export const at = (path: string): ReadonlyArray<Route> => all.flatMap(([own, route]) => (own === path ? [route] : []))
