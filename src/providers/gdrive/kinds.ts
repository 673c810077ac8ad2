import { type DriveFile, isStored, storedTypeOf } from './model.ts'

/** Export formats of one of Google's own document types, by the name of the form; the first is the default. */
export interface Kind {
  readonly forms: Readonly<Record<string, string>>
  /** MIME type of the default form's content. */
  readonly mimeType: string
}

const office = 'application/vnd.openxmlformats-officedocument.'
const pdf = 'application/pdf'
const sheet = `${office}spreadsheetml.sheet`

const kinds: ReadonlyMap<string, Kind> = new Map(
  Object.entries({
    document: kind({
      markdown: 'text/markdown',
      text: 'text/plain',
      docx: `${office}wordprocessingml.document`,
      pdf,
    }),
    // Drive's CSV export has only the first sheet, so the workbook with all sheets is exported.
    spreadsheet: { forms: { csv: sheet, xlsx: sheet, pdf }, mimeType: 'text/markdown' },
    presentation: kind({ text: 'text/plain', pptx: `${office}presentationml.presentation`, pdf }),
    drawing: kind({ png: 'image/png', svg: 'image/svg+xml', pdf }),
  }).map(([name, value]) => [`application/vnd.google-apps.${name}`, value]),
)

function kind(forms: Readonly<Record<string, string>>): Kind {
  return { forms, mimeType: Object.values(forms)[0] ?? '' }
}

export const spreadsheetType = 'application/vnd.google-apps.spreadsheet'

/** Returns the export formats of a type; undefined when it is not one of Google's own formats, or has no content to read. */
export function kindOf(type: string): Kind | undefined {
  return kinds.get(type)
}

/** Names of all forms. */
export const formNames: readonly string[] = [...new Set([...kinds.values()].flatMap(({ forms }) => Object.keys(forms)))]

/** Whether a file has content to read: not folders, forms, sites and the like, and no file that may not be downloaded. */
export function isServed({ type, readable, trashed, size }: DriveFile): boolean {
  return readable && !trashed && (kinds.has(type) || (isStored(type) && size !== undefined))
}

/** Returns the MIME type for the listing. */
export function mimeTypeOf(file: DriveFile): string {
  return kindOf(file.type)?.mimeType ?? storedTypeOf(file)
}
