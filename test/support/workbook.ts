import { zip } from '../fixtures/documents/zip.ts'

const head = '<?xml version="1.0" encoding="UTF-8"?>'
const main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')

const relationships = (targets: readonly (readonly [id: string, type: string, target: string])[]) =>
  `${head}<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${targets
    .map(([id, type, target]) => `<Relationship Id="${id}" Type="${office}/${type}" Target="${target}"/>`)
    .join('')}</Relationships>`

/** Returns a workbook of several sheets of texts, in the form of an export by Google. */
export function workbook(
  sheets: readonly { readonly name: string; readonly rows: readonly (readonly string[])[] }[],
): Buffer {
  const part = (index: number) => `worksheets/sheet${index + 1}.xml`
  return zip([
    { name: '_rels/.rels', data: relationships([['rId1', 'officeDocument', '/xl/workbook.xml']]) },
    {
      name: 'xl/_rels/workbook.xml.rels',
      data: relationships(sheets.map((_, index) => [`rId${index + 1}`, 'worksheet', part(index)] as const)),
    },
    {
      name: 'xl/workbook.xml',
      data: `${head}<workbook ${main} xmlns:r="${office}"><sheets>${sheets
        .map(({ name }, i) => `<sheet name="${escaped(name)}" sheetId="${i + 1}" r:id="rId${i + 1}"/>`)
        .join('')}</sheets></workbook>`,
    },
    ...sheets.map(({ rows }, index) => ({
      name: `xl/${part(index)}`,
      data: `${head}<worksheet ${main}><sheetData>${rows
        .map(
          (row, r) =>
            `<row r="${r + 1}">${row
              .map(
                (cell, c) =>
                  `<c r="${String.fromCharCode(65 + c)}${r + 1}" t="inlineStr"><is><t>${escaped(cell)}</t></is></c>`,
              )
              .join('')}</row>`,
        )
        .join('')}</sheetData></worksheet>`,
    })),
  ])
}
