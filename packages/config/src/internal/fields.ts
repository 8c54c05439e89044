/** The fields that a schema of configuration allows, read from the schema itself. */
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"

/** A struct in a schema. */
export interface Struct {
  readonly fields: ReadonlyArray<Field>
}

/** A field of a struct. */
interface Field {
  readonly name: string
  readonly isRequired: boolean
  /**
   * The only value that the field may have, as JSON, such as the `type` of a backoff. Default: the field may have other
   * values.
   */
  readonly literal: string | undefined
  /** The structs that the field may hold. */
  readonly structs: ReadonlyArray<Struct>
  /** The structs of the field's entries, if their keys are free. */
  readonly entries: ReadonlyArray<Struct>
}

/** Returns the structs that a value of the schema may be. A recursive schema is read once. */
export const structs = ({ ast }: Pick<Schema.Top, "ast">): ReadonlyArray<Struct> => ofAst(SchemaAST.toEncoded(ast))

const ofAst = (ast: SchemaAST.AST): ReadonlyArray<Struct> => {
  if (SchemaAST.isUnion(ast)) return ast.types.flatMap(ofAst)
  if (!SchemaAST.isObjects(ast)) return []
  return [{ fields: ast.propertySignatures.map(({ name, type }) => fieldOf(String(name), type)) }]
}

const fieldOf = (name: string, type: SchemaAST.AST): Field => ({
  name,
  isRequired: !SchemaAST.isOptional(type),
  literal: SchemaAST.isLiteral(type) ? JSON.stringify(type.literal) : undefined,
  structs: ofAst(type),
  entries: SchemaAST.isObjects(type) ? type.indexSignatures.flatMap((entry) => ofAst(entry.type)) : []
})

/** Returns the paths of the values that the structs may have. */
export const paths = (all: ReadonlyArray<Struct>): ReadonlyArray<ReadonlyArray<string>> =>
  all.flatMap(({ fields }) =>
    fields.flatMap((field) => [[field.name], ...paths(field.structs).map((path) => [field.name, ...path])])
  )
