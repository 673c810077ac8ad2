import { type DriveFile, isStored, storedTypeOf } from './model.ts'

/** How one of Google's own formats is read: what it is exported as, by the name of the form; the first is the usual one. */
export interface Kind {
  readonly forms: Readonly<Record<string, string>>
  /** The type of what is answered in the usual form. */
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
    // What Drive exports as CSV is the first sheet alone: all of them are in the workbook.
    spreadsheet: { forms: { csv: sheet, xlsx: sheet, pdf }, mimeType: 'text/markdown' },
    presentation: kind({ text: 'text/plain', pptx: `${office}presentationml.presentation`, pdf }),
    drawing: kind({ png: 'image/png', svg: 'image/svg+xml', pdf }),
  }).map(([name, value]) => [`application/vnd.google-apps.${name}`, value]),
)

function kind(forms: Readonly<Record<string, string>>): Kind {
  return { forms, mimeType: Object.values(forms)[0] ?? '' }
}

export const spreadsheetType = 'application/vnd.google-apps.spreadsheet'

/** How a file is read where it is one of Google's own formats; `undefined` where it is not, or has no content to read. */
export function kindOf(type: string): Kind | undefined {
  return kinds.get(type)
}

/** All names of forms there are. */
export const formNames: readonly string[] = [...new Set([...kinds.values()].flatMap(({ forms }) => Object.keys(forms)))]

/** Whether there is a content to read: not of folders, forms, sites and the like, nor of what may not be fetched. */
export function isServed({ type, readable, trashed, size }: DriveFile): boolean {
  return readable && !trashed && (kinds.has(type) || (isStored(type) && size !== undefined))
}

/** The type that a file is listed with. */
export function mimeTypeOf(file: DriveFile): string {
  return kindOf(file.type)?.mimeType ?? storedTypeOf(file)
}
