import type { TextFilter } from '../texts.ts'
import type { Value } from './database.ts'

/** Which of the parts, given as JSON, a filter lets pass. */
export function filterSql({ mounts, mimeType, audience, minPriority, since }: TextFilter) {
  const values: Value[] = []
  const value = (given: Value) => `?${values.push(given) + 1}`
  const conditions = [
    ...(mounts === undefined ? [] : [`t.mount in (select value from json_each(${value(JSON.stringify(mounts))}))`]),
    ...(mimeType === undefined
      ? []
      : mimeType.endsWith('/*')
        ? [`substr(t.mime, 1, ${mimeType.length - 1}) = ${value(mimeType.slice(0, -1))}`]
        : [`t.mime = ${value(mimeType)}`]),
    ...(audience === undefined ? [] : [`(t.audience = '  ' or instr(t.audience, ${value(` ${audience} `)}) > 0)`]),
    ...(minPriority === undefined ? [] : [`t.priority >= ${value(minPriority)}`]),
    ...(since === undefined ? [] : [`t.modified >= ${value(since)}`]),
  ]
  const sql = `select json_group_array(p.id) as ids from json_each(?1) j cross join parts p on p.id = j.value
    cross join texts t on t.id = p.text where ${['true', ...conditions].join(' and ')}`
  return { sql, values }
}
