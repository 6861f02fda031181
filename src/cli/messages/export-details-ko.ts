import { type Form, translated } from './korean-forms.ts'

const DETAILS: readonly Form[] = [
  [
    /^there is no (\S+), which is written last: .+$/,
    '마지막에 쓰이는 $1이(가) 없습니다. 내보내기가 끝까지 실행되지 않았습니다.',
  ],
  [/^it is no manifest of a version that is known here$/, '이 버전이 아는 형식의 매니페스트가 아닙니다.'],
  [/^the manifest does not name it$/, '매니페스트에 없는 파일입니다.'],
  [/^it is not there$/, '파일이 없습니다.'],
  [/^it is no file$/, '파일이 아닙니다.'],
  [/^it cannot be decompressed$/, '압축을 풀 수 없습니다.'],
  [
    /^its SHA-256 is (\w+), and (\S+) says (.+): one of the two was edited$/,
    'SHA-256이 $1인데 $2에는 $3(으)로 적혀 있습니다. 둘 중 하나가 변경되었습니다.',
  ],
  [
    /^it has (\d+) of its (\d+) bytes: its end is missing$/,
    '$2바이트 중 $1바이트만 있습니다. 끝이 없습니다.',
  ],
  [
    /^its bytes were changed: SHA-256 (\w+) of (\d+) bytes, and the manifest says (\w+) of (\d+)$/,
    '내용이 변경되었습니다. SHA-256 $1($2바이트)인데 매니페스트에는 $3($4바이트)입니다.',
  ],
  [
    /^(?:it holds|its files hold) (\d+) events, and the manifest says (\d+)$/,
    '이벤트가 $1건인데 매니페스트에는 $2건입니다.',
  ],
  [/^what it holds is not what the manifest says$/, '내용이 매니페스트와 다릅니다.'],
  [/^it holds a line that is no event$/, '이벤트가 아닌 줄이 있습니다.'],
  [
    /^the database has no export with this manifest: .+$/,
    '데이터베이스에 이 매니페스트의 내보내기가 없습니다. 기록되기 전에 끝났거나(다음 내보내기가 같은 위치에서 시작합니다) 다른 데이터베이스의 것입니다.',
  ],
  [
    /^for stream (".*") from position (\d+) on, the database has recorded export (\d+) with the manifest (\w+), and this one is (\w+)$/,
    '스트림 $1의 위치 $2부터는 데이터베이스에 내보내기 $3번(매니페스트 $4)이 기록되어 있는데, 이 매니페스트는 $5입니다.',
  ],
  [
    /^the record of export (\d+) was changed: .+$/,
    '내보내기 $1번의 기록이 변경되었습니다. "commitpost audit verify"로 확인하십시오.',
  ],
  [/^the database has events that are not in it: (.+)$/, '데이터베이스에는 있는데 여기에 없는 이벤트: $1'],
]

/** What is wrong with an export, in Korean; as it is where its form is not known. */
export function exportDetailInKorean(detail: string): string {
  return translated(detail, DETAILS) ?? detail
}
