/** Cells of one result row, in column order. Numbers of more than 53 bits, decimals and times are strings. */
export type Cells = readonly (string | number | Buffer | null)[]

export type Bound = string | number | null

/** Runs one prepared statement, with its values apart. */
export type Query = (sql: string, values?: readonly Bound[]) => Promise<readonly Cells[]>
