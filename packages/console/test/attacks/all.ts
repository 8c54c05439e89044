/** All attacks. */
import type { Attack } from "./Attack.ts"
import * as Elsewhere from "./elsewhere.ts"
import * as OtherSites from "./otherSites.ts"
import * as Roles from "./roles.ts"
import * as Floods from "./floods.ts"
import * as Audit from "./audit.ts"
import * as Editing from "./editing.ts"
import * as Delayed from "./delayed.ts"
import * as Queues from "./queues.ts"
import * as Events from "./events.ts"
import * as Exports from "./exports.ts"
import * as Letters from "./letters.ts"
import * as Redaction from "./redaction.ts"
import * as Selecting from "./selecting.ts"
import * as Twins from "./twins.ts"
import * as Watching from "./watching.ts"

/** The attacks of each file. */
export const files: Readonly<Record<string, ReadonlyArray<Attack>>> = {
  elsewhere: Elsewhere.attacks,
  otherSites: OtherSites.attacks,
  roles: Roles.attacks,
  floods: Floods.attacks,
  audit: Audit.attacks,
  letters: Letters.attacks,
  redaction: Redaction.attacks,
  selecting: Selecting.attacks,
  editing: Editing.attacks,
  delayed: Delayed.attacks,
  queues: Queues.attacks,
  twins: Twins.attacks,
  watching: Watching.attacks,
  exports: Exports.attacks,
  events: Events.attacks
}

export const attacks: ReadonlyArray<Attack> = Object.values(files).flat()
