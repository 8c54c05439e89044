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

export const attacks: ReadonlyArray<Attack> = [
  ...Elsewhere.attacks,
  ...OtherSites.attacks,
  ...Roles.attacks,
  ...Floods.attacks,
  ...Audit.attacks,
  ...Letters.attacks,
  ...Redaction.attacks,
  ...Selecting.attacks,
  ...Editing.attacks,
  ...Delayed.attacks,
  ...Queues.attacks,
  ...Twins.attacks,
  ...Watching.attacks,
  ...Exports.attacks,
  ...Events.attacks
]
