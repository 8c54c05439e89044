/** All cases, by group. */
import type { Case } from "./Case.ts"
import { cases as delivery } from "./cases/delivery.ts"
import { cases as limits } from "./cases/limits.ts"

export const cases: ReadonlyArray<Case> = [...delivery, ...limits]
