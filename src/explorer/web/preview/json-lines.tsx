import { useMemo, useState } from 'preact/hooks'
import { Choice } from './controls.tsx'
import { DataTable } from './data-table.tsx'
import { JsonTree } from './json-tree.tsx'
import { parseLines, tableOf } from './model/json-rows.ts'
import { t } from './words.ts'

/** JSON documents, one on each line: as a table if they have the same members, else as a tree. */
export function JsonLines({ text }: { readonly text: string }) {
  const values = useMemo(() => parseLines(text), [text])
  const table = useMemo(() => tableOf(values), [values])
  const [form, setForm] = useState<'table' | 'tree'>('table')
  if (table === undefined) return <JsonTree value={values} />
  const choice = (
    <Choice
      label={t('view')}
      options={[
        ['table', t('table')],
        ['tree', t('tree')],
      ]}
      value={form}
      onChoose={setForm}
    />
  )
  if (form === 'table') return <DataTable rows={table}>{choice}</DataTable>
  return (
    <>
      <div class="preview-bar thin">{choice}</div>
      <JsonTree value={values} />
    </>
  )
}
