/** The mutants of the suite. */
import type { Mutant } from "./Mutant.ts"
import { mutants as backlog } from "./mutants/backlog.ts"
import { mutants as browsing } from "./mutants/browsing.ts"
import { mutants as consuming } from "./mutants/consuming.ts"
import { mutants as contexts } from "./mutants/contexts.ts"
import { mutants as copying } from "./mutants/copying.ts"
import { mutants as crediting } from "./mutants/crediting.ts"
import { mutants as decoding } from "./mutants/decoding.ts"
import { mutants as delivering } from "./mutants/delivering.ts"
import { mutants as failing } from "./mutants/failing.ts"
import { mutants as keys } from "./mutants/keys.ts"
import { mutants as losing } from "./mutants/losing.ts"
import { mutants as misreading } from "./mutants/misreading.ts"
import { mutants as mistaking } from "./mutants/mistaking.ts"
import { mutants as mistranslating } from "./mutants/mistranslating.ts"
import { mutants as operating } from "./mutants/operating.ts"
import { mutants as producing } from "./mutants/producing.ts"
import { mutants as punctuality } from "./mutants/punctuality.ts"
import { mutants as redriving } from "./mutants/redriving.ts"
import { mutants as settling } from "./mutants/settling.ts"
import { mutants as shares } from "./mutants/shares.ts"
import { mutants as storing } from "./mutants/storing.ts"
import { mutants as transacting } from "./mutants/transacting.ts"
import { mutants as waiting } from "./mutants/waiting.ts"

export { shifted } from "./mutants/punctuality.ts"

/** All mutants. Each must be killed by the case that it names. */
export const mutants: ReadonlyArray<Mutant> = [
  ...settling,
  ...storing,
  ...transacting,
  ...keys,
  ...shares,
  ...mistranslating,
  ...copying,
  ...delivering,
  ...decoding,
  ...contexts,
  ...crediting,
  ...consuming,
  ...failing,
  ...misreading,
  ...mistaking,
  ...producing,
  ...waiting,
  ...punctuality,
  ...operating,
  ...browsing,
  ...backlog,
  ...redriving,
  ...losing
]
