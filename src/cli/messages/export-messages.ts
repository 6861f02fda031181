import type { ExportProblemKind } from '../../retain/export-report.ts'
import { exportDetailInKorean } from './export-details-ko.ts'

/** `export run`, `export list` and `export verify`. */
export interface ExportMessages {
  readonly progress: (events: string, of: string, files: string) => string
  readonly exported: (stream: string, events: string, first: string, last: string, operator: string) => string
  readonly location: (directory: string) => string
  readonly whatNext: (directory: string) => string
  readonly nothing: (stream: string) => string
  readonly needsCatalogue: string
  readonly notBoth: string
  readonly interrupted: string
  readonly none: string
  readonly columns: Readonly<
    Record<'id' | 'stream' | 'positions' | 'events' | 'exportedAt' | 'by' | 'verifiedAt' | 'location', string>
  >
  readonly unmasked: string
  readonly notVerified: string
  readonly nextPage: (before: string) => string
  readonly holds: (stream: string, events: string, files: string) => string
  readonly compared: (id: string) => string
  readonly filesOnly: string
  readonly verified: (id: string, operator: string) => string
  readonly broken: (file: string | null, problem: string, detail: string) => string
  readonly problems: Readonly<Record<ExportProblemKind, string>>
  readonly needsDatabase: string
}

/** English. */
export const exportEn: ExportMessages = {
  progress: (events, of, files) => `${events} of ${of} events, ${files} files`,
  exported: (stream, events, first, last, operator) =>
    `Exported ${events} events of ${stream}, positions ${first} to ${last}. Recorded for ${operator}.`,
  location: (directory) => `They are in ${directory}`,
  whatNext: (directory) => `Verify it: commitpost export verify ${directory} --operator NAME`,
  nothing: (stream) => `There is nothing new to export of ${stream}: nothing was written.`,
  needsCatalogue:
    'Give --config FILE, whose catalogue says what is sensitive and is masked, or --reveal to export all of it, which is recorded.',
  notBoth: 'Give --until or --older-than, not both.',
  interrupted: 'Broken off: nothing was recorded, and what was written has been removed.',
  none: 'Nothing has been exported.',
  columns: {
    id: 'ID',
    stream: 'STREAM',
    positions: 'POSITIONS',
    events: 'EVENTS',
    exportedAt: 'EXPORTED AT',
    by: 'BY',
    verifiedAt: 'VERIFIED AT',
    location: 'LOCATION',
  },
  unmasked: ' (unmasked)',
  notVerified: 'not yet',
  nextPage: (before) => `More: add --before ${before}`,
  holds: (stream, events, files) => `The export holds: ${events} events of ${stream} in ${files} files.`,
  compared: (id) =>
    `It is export ${id} of the database, which has no event of these positions that is not in it.`,
  filesOnly: 'Only the files were looked at: no database was given.',
  verified: (id, operator) => `Export ${id} is recorded as verified by ${operator}.`,
  broken: (file, problem, detail) =>
    `The export does NOT hold${file === null ? '' : `, at ${file}`}: ${problem}.\n${detail}`,
  problems: {
    'half-written': 'it is half-written',
    'manifest-edited': 'its manifest was edited',
    'manifest-unknown': 'its manifest cannot be read',
    'missing-file': 'the file is missing',
    'extra-file': 'the file does not belong to it',
    'truncated-file': 'the file is cut off',
    'changed-file': 'the file was changed',
    'wrong-content': 'what it holds is not what the manifest says',
    'not-recorded': 'the database knows nothing of it',
    'record-differs': 'it is not what the database has recorded',
    'missing-event': 'events are missing',
  },
  needsDatabase: '--operator records the verification in a database: give --database or DATABASE_URL.',
}

/** Korean. */
export const exportKo: ExportMessages = {
  progress: (events, of, files) => `이벤트 ${of}건 중 ${events}건, 파일 ${files}개`,
  exported: (stream, events, first, last, operator) =>
    `${stream}의 이벤트 ${events}건(위치 ${first}~${last})을 내보냈습니다. 운영자 ${operator}(으)로 기록했습니다.`,
  location: (directory) => `위치: ${directory}`,
  whatNext: (directory) => `검증: commitpost export verify ${directory} --operator NAME`,
  nothing: (stream) => `${stream}에서 새로 내보낼 것이 없습니다. 아무것도 쓰지 않았습니다.`,
  needsCatalogue:
    '민감한 필드를 알 수 있도록 --config FILE을 지정하거나, 모두 내보내려면 --reveal을 지정하십시오(기록됩니다).',
  notBoth: '--until과 --older-than 중 하나만 지정하십시오.',
  interrupted: '중단했습니다. 아무것도 기록하지 않았고 쓴 파일은 지웠습니다.',
  none: '내보낸 것이 없습니다.',
  columns: {
    id: 'ID',
    stream: '스트림',
    positions: '위치',
    events: '이벤트',
    exportedAt: '내보낸 시각',
    by: '운영자',
    verifiedAt: '검증 시각',
    location: '경로',
  },
  unmasked: ' (가리지 않음)',
  notVerified: '아직',
  nextPage: (before) => `다음: --before ${before} 옵션을 추가하십시오.`,
  holds: (stream, events, files) => `온전합니다. ${stream}의 이벤트 ${events}건, 파일 ${files}개입니다.`,
  compared: (id) => `데이터베이스의 내보내기 ${id}번이며, 이 위치의 이벤트 중 빠진 것이 없습니다.`,
  filesOnly: '데이터베이스가 지정되지 않아 파일만 확인했습니다.',
  verified: (id, operator) => `내보내기 ${id}번을 운영자 ${operator}의 이름으로 검증했다고 기록했습니다.`,
  broken: (file, problem, detail) =>
    `온전하지 않습니다${file === null ? '' : ` (${file})`}: ${problem}.\n${exportDetailInKorean(detail)}`,
  problems: {
    'half-written': '쓰다가 중단된 내보내기입니다',
    'manifest-edited': '매니페스트가 변경되었습니다',
    'manifest-unknown': '매니페스트를 읽을 수 없습니다',
    'missing-file': '파일이 없습니다',
    'extra-file': '이 내보내기에 속하지 않는 파일입니다',
    'truncated-file': '파일의 끝이 잘렸습니다',
    'changed-file': '파일이 변경되었습니다',
    'wrong-content': '내용이 매니페스트와 다릅니다',
    'not-recorded': '데이터베이스에 기록되지 않은 내보내기입니다',
    'record-differs': '데이터베이스의 기록과 다릅니다',
    'missing-event': '빠진 이벤트가 있습니다',
  },
  needsDatabase: '--operator는 검증을 데이터베이스에 기록합니다. --database나 DATABASE_URL을 지정하십시오.',
}
