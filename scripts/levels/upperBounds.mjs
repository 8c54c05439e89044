/** Finds assertions that real time took no longer than a limit: a slow machine makes them fail. */
import { parseSync } from "oxc-parser"

const isNode = (value) => typeof value === "object" && value !== null && typeof value.type === "string"

/** The children of a node. */
const childrenOf = (node) => Object.values(node).flat().filter(isNode)

const walk = function* (node) {
  yield node
  for (const child of childrenOf(node)) yield* walk(child)
}

/** `performance.now()`, `Date.now()`, `process.hrtime()`. */
const isClock = ({ callee, type }) =>
  type === "CallExpression" &&
  callee.type === "MemberExpression" &&
  ["performance.now", "Date.now", "process.hrtime"].includes(`${callee.object.name}.${callee.property.name}`)

const has = (node, is) => [...walk(node)].some(is)

/** The names of the variables whose initial value is of this kind, directly or through another variable. */
const namesOf = (declarations, is) => {
  const names = new Set()
  const isNamed = (node) => is(node) || (node.type === "Identifier" && names.has(node.name))
  for (let before = -1; before !== names.size; ) {
    before = names.size
    for (const { id, init } of declarations) {
      if (id.type === "Identifier" && init !== null && !/Function/.test(init.type) && has(init, isNamed)) {
        names.add(id.name)
      }
    }
  }
  return names
}

const below = /^(isBelow|isAtMost|toBeLessThan|toBeLessThanOrEqual)$/

/** The lines of a source that assert an upper bound on real time. */
export const upperBounds = (file, source) => {
  // Most files read no clock.
  if (!/\b(now|hrtime)\(/.test(source)) return []
  const nodes = [...walk(parseSync(file, source).program)]
  const declarations = nodes.filter(({ type }) => type === "VariableDeclarator")
  const times = namesOf(declarations, isClock)
  const isTime = (node) => isClock(node) || (node.type === "Identifier" && times.has(node.name))
  const isDifference = (node) => node.type === "BinaryExpression" && node.operator === "-" && has(node, isTime)
  const spans = namesOf(declarations, isDifference)
  const isSpan = (node) => isDifference(node) || (node.type === "Identifier" && spans.has(node.name))

  // Between two reads of the clock, the machine decides nothing.
  const isLimit = (node) => node !== undefined && !has(node, isTime)

  const isAssertion = ({ callee, type }) => type === "CallExpression" && callee.type === "MemberExpression"
  const isBelow = ({ arguments: [actual, limit = actual], callee }) =>
    below.test(callee.property.name) &&
    // expect(actual).toBeLessThan(limit), or assert.isBelow(actual, limit)
    ((has(callee, isSpan) && isLimit(actual)) || (has(actual, isSpan) && isLimit(limit)))
  const comparesBelow = (node) =>
    has(node, ({ left, operator, right, type }) => {
      if (type !== "BinaryExpression") return false
      if (/^<=?$/.test(operator)) return has(left, isSpan) && isLimit(right)
      return /^>=?$/.test(operator) && has(right, isSpan) && isLimit(left)
    })
  const found = nodes
    .filter(isAssertion)
    .filter(
      (node) =>
        isBelow(node) ||
        (/^(isTrue|ok|equal|toBe|toEqual|toBeTruthy)$/.test(node.callee.property.name) && comparesBelow(node))
    )
  return found.map(({ start }) => source.slice(0, start).split("\n").length)
}
