import type { RelationKind } from '../relational/model.ts'

/** Converts a letter of `pg_class.relkind` to a kind of relation. */
export function kindOf(letter: string): RelationKind {
  switch (letter) {
    case 'p':
      return 'partitioned table'
    case 'v':
      return 'view'
    case 'm':
      return 'materialized view'
    default:
      return 'table'
  }
}
