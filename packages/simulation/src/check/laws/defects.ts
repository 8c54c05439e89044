import { type Law, violation } from "../internal/law.ts"

/** Nothing throws where nothing may throw. */
export const defects: Law = ({ history }) =>
  history.flatMap((entry, index) =>
    entry._tag === "Defect"
      ? [violation("defect", entry.at, { process: entry.process }, `${entry.process}: ${entry.detail}.`, [index])]
      : []
  )
