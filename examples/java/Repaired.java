// The same client on java.net.http, repaired: it can be killed at any moment and run again.
//
// What it changes about Naive.java:
//
// - a record on disk before every request, so that the next run knows what may have happened;
// - one idempotency token for the operation, made once and stored before it is used;
// - an unanswered create is an open question, settled by the same token or a look-up, or handed to a person;
// - Retry-After is obeyed, otherwise it backs off, and the time of the next poll outlives a restart;
// - a failed poll is not a failed job, and only a terminal state ends the waiting;
// - no credential leaves for another origin;
// - a result is checked against all that the provider states of it before anybody calls it a success.
//
//     jobsworth check --one-shot -- java examples/java/Repaired.java

import java.io.IOException;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

public class Repaired {
    static final int EX_DATAERR = 65;
    static final double MARGIN_S = 0.2; // of a deadline or a token's lifetime: a request takes a moment to arrive
    static final int RESULT_TRIES = 7;
    static final Set<Integer> CREATED = Set.of(200, 201, 202);
    static final Set<Integer> REDIRECTS = Set.of(301, 302, 303, 307, 308);
    static final Set<Integer> REJECTIONS = Set.of(400, 404, 405, 410, 413, 415, 422);
    static final Set<Object> TERMINAL = Set.of("succeeded", "failed", "cancelled");

    static final SecureRandom RANDOM = new SecureRandom();
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    static final String URL = System.getenv("PROVIDER_URL");
    static final String OPERATION = System.getenv("OPERATION_ID");
    static final Path STATE = Path.of(System.getenv("STATE_DIR"));

    final Map<String, Object> contract = object(Json.parse(Files.readString(Path.of(System.getenv("CONTRACT_FILE")))));
    final Map<String, Object> request = object(Json.parse(Files.readString(Path.of(System.getenv("REQUEST_FILE")))));
    final Path path = STATE.resolve(OPERATION + ".json");
    Map<String, Object> record;

    public static void main(String[] args) throws Exception {
        Repaired client = new Repaired();
        client.open();
        client.create();
        client.observe();
        client.collect();
    }

    Repaired() throws IOException {}

    // -- the record: all that is known of the operation, on disk before anything is done about it

    void open() throws Exception {
        String fingerprint = sha256(Json.write(request).getBytes(StandardCharsets.UTF_8));
        if (Files.exists(path)) {
            record = object(Json.parse(Files.readString(path)));
            if (!fingerprint.equals(record.get("fingerprint"))) {
                say(fields("state", "refused", "explanation", OPERATION + " exists with another request"), EX_DATAERR);
            }
            if (record.get("claim") != null) {
                Map<String, Object> claim = object(record.get("claim"));
                say(claim, "succeeded".equals(claim.get("state")) ? 0 : 1);
            }
            return;
        }
        record = fields("fingerprint", fingerprint, "token", hex(16), "trace", hex(16), "begun_at", now(),
                "first_sent_at", null, "job", null, "next_at", 0.0, "waits", 0L, "succeeded", null, "claim", null);
        save();
    }

    /** Makes it durable: a new file beside the old one, then one rename. */
    void save(Object... changes) throws IOException {
        record.putAll(fields(changes));
        Path beside = STATE.resolve(OPERATION + ".new");
        try (FileChannel file = FileChannel.open(beside, StandardOpenOption.CREATE, StandardOpenOption.WRITE,
                StandardOpenOption.TRUNCATE_EXISTING)) {
            file.write(ByteBuffer.wrap(Json.write(record).getBytes(StandardCharsets.UTF_8)));
            file.force(true);
        }
        Files.move(beside, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    }

    static void say(Map<String, Object> claim, int status) {
        System.out.println(Json.write(claim));
        System.out.flush();
        System.exit(status);
    }

    /** Records how it ended, and says so. */
    void end(String state, String explanation, Object... more) throws IOException {
        Map<String, Object> claim = fields("state", state, "remote_job", record.get("job"), "explanation", explanation);
        claim.putAll(fields(more));
        save("claim", claim);
        say(claim, state.equals("succeeded") ? 0 : 1);
    }

    void giveUp(String why) throws IOException {
        end("human_decision_required", why);
    }

    // -- requests

    /** Sends one request; null if no whole answer came. The credential goes to its own origin only. */
    HttpResponse<byte[]> call(String method, String target, String body, Map<String, String> headers) throws Exception {
        URI own = URI.create(URL);
        URI next = URI.create(target);
        for (int hops = 0; hops < 5; hops++) {
            if (!own.getScheme().equals(next.getScheme()) || !own.getAuthority().equals(next.getAuthority())) {
                return null;
            }
            HttpRequest.Builder asked = HttpRequest.newBuilder(next)
                    .timeout(Duration.ofMillis((long) (seconds("REQUEST_TIMEOUT_S") * 1000)))
                    .header("Authorization", System.getenv("JOBSWORTH_AUTHORIZATION"))
                    .header("traceparent", "00-" + record.get("trace") + "-" + hex(8) + "-01")
                    .method(method, body == null ? BodyPublishers.noBody() : BodyPublishers.ofString(body));
            if (body != null) {
                asked.header("Content-Type", "application/json");
            }
            headers.forEach(asked::header);
            HttpResponse<byte[]> answer;
            try {
                answer = CLIENT.send(asked.build(), BodyHandlers.ofByteArray());
            } catch (IOException error) {
                return null;
            }
            if (!REDIRECTS.contains(answer.statusCode()) || !method.equals("GET")) {
                return answer;
            }
            next = next.resolve(header(answer, "location"));
        }
        return null;
    }

    static String header(HttpResponse<byte[]> answer, String name) {
        return answer == null ? "" : answer.headers().firstValue(name).orElse("").strip();
    }

    /** The JSON object in an answer with one of these statuses that says it is JSON; null if there is none. */
    static Map<String, Object> jsonOf(HttpResponse<byte[]> answer, Set<Integer> statuses) {
        if (answer == null || !statuses.contains(answer.statusCode())
                || !header(answer, "content-type").startsWith("application/json")) {
            return null;
        }
        try {
            return object(Json.parse(new String(answer.body(), StandardCharsets.UTF_8)));
        } catch (IllegalArgumentException error) {
            return null;
        }
    }

    /** What a Retry-After asks for, in either of its forms; null if there is none that can be read. */
    static Double askedS(HttpResponse<byte[]> answer) {
        String text = header(answer, "retry-after");
        if (text.matches("[0-9]+")) {
            return Double.parseDouble(text);
        }
        try {
            double at = ZonedDateTime.parse(text, DateTimeFormatter.RFC_1123_DATE_TIME).toEpochSecond();
            return Math.max(0, at - now());
        } catch (DateTimeException error) {
            return null;
        }
    }

    /** Stores when the next request is due: as asked, else by capped exponential back-off with jitter. */
    void plan(HttpResponse<byte[]> answer, Object... changes) throws IOException {
        record.putAll(fields(changes));
        Double waitS = askedS(answer);
        long waits = number(record.get("waits")).longValue();
        if (waitS == null) {
            waitS = Math.min(seconds("POLL_CAP_S"), seconds("POLL_FIRST_S") * Math.pow(2, Math.min(waits, 30)));
            waitS *= 1 + RANDOM.nextDouble() * seconds("POLL_JITTER");
            waits++;
        }
        save("next_at", now() + waitS, "waits", waits);
    }

    /** Sleeps until the next request is due; false if the deadline comes first. */
    boolean wait(double deadline) throws InterruptedException {
        double nextAt = number(record.get("next_at")).doubleValue();
        for (double left; (left = Math.min(nextAt, deadline) - now()) > 0; ) {
            Thread.sleep((long) Math.ceil(left * 1000));
        }
        return nextAt < deadline && now() < deadline;
    }

    double deadline(String name) {
        return number(record.get("begun_at")).doubleValue() + seconds(name);
    }

    // -- create

    /** Gets a job id, by one create in effect, however often it is sent. */
    void create() throws Exception {
        while (record.get("job") == null) {
            if (!wait(deadline("CREATE_DEADLINE_S") - MARGIN_S)) {
                giveUp("the create deadline passed, and nobody knows whether there is a job");
            }
            boolean isFirst = record.get("first_sent_at") == null;
            if (!isFirst && !maySendAgain()) {
                lookUp("a create was not answered", true);
                continue;
            }
            if (isFirst) {
                save("first_sent_at", now());
            }
            Map<String, Object> body = new LinkedHashMap<>(request);
            Map<String, String> headers = new LinkedHashMap<>();
            Object mechanism = object(contract.get("idempotency")).get("mechanism");
            if (mechanism.equals("header")) {
                headers.put("Idempotency-Key", "\"" + record.get("token") + "\"");
            } else if (mechanism.equals("body_field")) {
                body.put("request_id", record.get("token"));
            }
            if (object(contract.get("lookup")).get("by").equals("by_operation_id")) {
                headers.put("X-Client-Operation-Id", OPERATION);
            }
            HttpResponse<byte[]> answer = call("POST", URL + "/v1/jobs", Json.write(body), headers);
            Map<String, Object> job = jsonOf(answer, CREATED);
            if (job != null && job.get("id") != null) {
                accept(job, answer);
            } else if (answer == null || !REJECTIONS.contains(answer.statusCode())) {
                plan(answer);
            } else if (isFirst) {
                end("failed", "the provider rejected the request: " + answer.statusCode());
            } else {
                lookUp("a repeated create was refused with " + answer.statusCode(), false);
            }
        }
    }

    /** Whether the provider will recognise the create. */
    boolean maySendAgain() {
        Map<String, Object> terms = object(contract.get("idempotency"));
        double lifetimeS = number(terms.get("key_lifetime_s")).doubleValue();
        double knownUntil = number(record.get("first_sent_at")).doubleValue() + lifetimeS - MARGIN_S;
        return !terms.get("mechanism").equals("none") && now() < knownUntil;
    }

    void accept(Map<String, Object> job, HttpResponse<byte[]> answer) throws IOException {
        Object owner = job.get("client_reference");
        if (owner != null && !owner.equals(OPERATION)) {
            giveUp("the provider answered with job " + job.get("id") + ", which is for " + owner);
        }
        boolean isFinished = contract.get("create_answer").equals("synchronous") && "succeeded".equals(state(job));
        plan(answer, "job", job.get("id"), "succeeded", isFinished ? job : null, "waits", 0L);
    }

    /** Finds the job of an uncertain create; hands it to a person where that cannot be done. */
    void lookUp(String doubt, boolean maySend) throws Exception {
        Map<String, Object> lookup = object(contract.get("lookup"));
        String query = switch ((String) lookup.get("by")) {
            case "by_client_reference" -> "client_reference=" + OPERATION;
            case "by_operation_id" -> "operation_id=" + OPERATION;
            case "recent_by_request_id" -> "request_id=" + record.get("token");
            default -> null;
        };
        if (query == null) {
            giveUp(doubt + ", and the provider offers no way to find out");
        }
        HttpResponse<byte[]> answer = call("GET", URL + "/v1/jobs?" + query, null, Map.of());
        Map<String, Object> found = jsonOf(answer, Set.of(200));
        if (found == null) {
            plan(answer);
            return;
        }
        List<?> jobs = (List<?>) found.get("jobs");
        if (jobs.size() > 1) {
            giveUp("there is more than one job: "
                    + jobs.stream().map(job -> (String) object(job).get("id")).collect(Collectors.joining(", ")));
        } else if (jobs.size() == 1) {
            accept(object(jobs.get(0)), answer);
        } else if (!lookup.get("authoritative").equals(true)) {
            plan(answer); // an empty answer proves nothing; look again until the deadline
        } else if (maySend) {
            plan(answer, "first_sent_at", null); // there is none: the next create is the first again
        } else {
            end("failed", doubt + ", and there is no job");
        }
    }

    // -- observe and collect

    /** What the provider's word for a job's state means; null for a word that is in no documentation. */
    String state(Map<String, Object> job) {
        for (Map.Entry<String, Object> told : object(object(contract.get("status")).get("words")).entrySet()) {
            if (told.getValue().equals(job.get("status"))) {
                return told.getKey();
            }
        }
        return null;
    }

    /** Reads the status until it is terminal. */
    Map<String, Object> observe() throws Exception {
        while (record.get("succeeded") == null) {
            if (!wait(deadline("RESULT_DEADLINE_S"))) {
                end("result_timed_out", "the result deadline passed; the job may go on");
            }
            String id = (String) record.get("job");
            String target = URL + "/v1/jobs/" + URLEncoder.encode(id, StandardCharsets.UTF_8);
            HttpResponse<byte[]> answer = call("GET", target, null, Map.of());
            Map<String, Object> job = jsonOf(answer, Set.of(200));
            String state = job == null || !id.equals(job.get("id")) ? null : state(job);
            if (state == null || !TERMINAL.contains(state)) {
                plan(answer);
            } else if (state.equals("succeeded")) {
                save("succeeded", job, "next_at", 0.0, "waits", 0L);
            } else {
                end(state, Json.write(job.get("error")));
            }
        }
        return object(record.get("succeeded"));
    }

    /** Fetches the result, and believes it only if it is what the provider states. */
    void collect() throws Exception {
        boolean once = object(contract.get("result")).get("kind").equals("one_time");
        String state = "result_unavailable";
        String why = "no result came";
        for (int tries = 0; tries < RESULT_TRIES; tries++) {
            Map<String, Object> stated = object(observe().get("result"));
            if (!wait(deadline("RESULT_DEADLINE_S"))) {
                break;
            }
            HttpResponse<byte[]> answer = null;
            byte[] body = null;
            String kind = (String) stated.get("content_type");
            if (stated.containsKey("inline")) {
                body = Json.write(stated.get("inline")).getBytes(StandardCharsets.UTF_8);
            } else {
                String target = URI.create(URL + "/").resolve((String) stated.get("href")).toString();
                answer = call("GET", target, null, Map.of());
                if (answer != null && answer.statusCode() == 200) {
                    body = answer.body();
                    kind = header(answer, "content-type");
                }
            }
            if (body != null) {
                Check check = check(stated, kind, body);
                if (check.wrong == null) {
                    Files.write(STATE.resolve(OPERATION + ".result"), body);
                    end("succeeded", null, "result_sha256", sha256(body), "records", check.records,
                            "failed_items", check.failed);
                }
                state = "result_validation_failed";
                why = check.wrong;
                if (once) {
                    break;
                }
            } else if (answer == null) {
                state = "result_unavailable";
                why = "the result was not delivered";
            } else if (answer.statusCode() == 410 && !once) {
                save("succeeded", null); // the link has expired: a status read gives a new one
                why = "its link had expired";
            } else {
                state = "result_unavailable";
                why = "the result was answered with " + answer.statusCode();
            }
            plan(answer);
        }
        end(state, why);
    }

    /** What is wrong with a result (null: nothing), the number of its records, and how many of them failed. */
    record Check(String wrong, long records, long failed) {}

    static Check check(Map<String, Object> stated, String kind, byte[] body) throws Exception {
        if (!kind.split(";")[0].equals(stated.get("content_type"))) {
            return new Check("it is " + kind + ", not " + stated.get("content_type"), 0, 0);
        }
        if (stated.get("size") != null && number(stated.get("size")).longValue() != body.length) {
            return new Check("it has " + body.length + " bytes, not " + stated.get("size"), 0, 0);
        }
        if (stated.get("sha256") != null && !stated.get("sha256").equals(sha256(body))) {
            return new Check("its checksum is another one", 0, 0);
        }
        long records = 0;
        long failed = 0;
        try {
            Map<String, Object> document = object(Json.parse(new String(body, StandardCharsets.UTF_8)));
            if (!OPERATION.equals(document.get("client_reference"))) {
                return new Check("it is the result of something else", 0, 0);
            }
            for (Object each : (List<?>) document.get("records")) {
                Map<String, Object> row = object(each);
                if (row.get("id") == null || !Set.<Object>of("ok", "failed").contains(row.getOrDefault("status", ""))) {
                    return new Check("it holds a row that is no record", 0, 0);
                }
                records++;
                failed += row.get("status").equals("failed") ? 1 : 0;
            }
        } catch (IllegalArgumentException | ClassCastException | NullPointerException error) {
            return new Check("it cannot be understood: " + error.getMessage(), 0, 0);
        }
        if (stated.get("records") != null && number(stated.get("records")).longValue() != records
                || stated.get("failed") != null && number(stated.get("failed")).longValue() != failed) {
            return new Check(records + " records, " + failed + " failed; stated are " + stated.get("records") + " and "
                    + stated.get("failed"), 0, 0);
        }
        return new Check(null, records, failed);
    }

    // -- small things

    static double now() {
        return System.currentTimeMillis() / 1000.0;
    }

    static double seconds(String name) {
        return Double.parseDouble(System.getenv(name));
    }

    static String hex(int bytes) {
        byte[] drawn = new byte[bytes];
        RANDOM.nextBytes(drawn);
        return HexFormat.of().formatHex(drawn);
    }

    static String sha256(byte[] data) throws Exception {
        return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(data));
    }

    static Number number(Object value) {
        return (Number) value;
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        if (!(value instanceof Map)) {
            throw new IllegalArgumentException("no JSON object: " + value);
        }
        return (Map<String, Object>) value;
    }

    static Map<String, Object> fields(Object... namesAndValues) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int at = 0; at < namesAndValues.length; at += 2) {
            made.put((String) namesAndValues[at], namesAndValues[at + 1]);
        }
        return made;
    }

    /** As much JSON as this needs: the JDK has none. What is written has sorted keys and no spaces. */
    static final class Json {
        private final String text;
        private int at;

        private Json(String text) {
            this.text = text;
        }

        static Object parse(String text) {
            Json json = new Json(text);
            Object value = json.value();
            if (json.peek() != 0) {
                throw json.wrong();
            }
            return value;
        }

        private IllegalArgumentException wrong() {
            return new IllegalArgumentException("no JSON at character " + at);
        }

        private char peek() {
            while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            return at < text.length() ? text.charAt(at) : 0;
        }

        private boolean take(String token) {
            peek();
            boolean found = text.startsWith(token, at);
            at += found ? token.length() : 0;
            return found;
        }

        private void expect(String token) {
            if (!take(token)) {
                throw wrong();
            }
        }

        private Object value() {
            switch (peek()) {
                case '{':
                    return object();
                case '[':
                    return array();
                case '"':
                    return string();
                default:
                    if (take("null")) {
                        return null;
                    }
                    return take("true") ? Boolean.TRUE : take("false") ? Boolean.FALSE : number();
            }
        }

        private Map<String, Object> object() {
            Map<String, Object> made = new LinkedHashMap<>();
            expect("{");
            if (!take("}")) {
                do {
                    peek();
                    String name = string();
                    expect(":");
                    made.put(name, value());
                } while (take(","));
                expect("}");
            }
            return made;
        }

        private List<Object> array() {
            List<Object> made = new ArrayList<>();
            expect("[");
            if (!take("]")) {
                do {
                    made.add(value());
                } while (take(","));
                expect("]");
            }
            return made;
        }

        private Number number() {
            int from = at;
            while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            String digits = text.substring(from, at);
            if (digits.isEmpty()) {
                throw wrong();
            }
            return digits.matches("-?[0-9]{1,18}") ? (Number) Long.valueOf(digits) : (Number) Double.valueOf(digits);
        }

        private String string() {
            StringBuilder made = new StringBuilder();
            expect("\"");
            while (at < text.length()) {
                char next = text.charAt(at++);
                if (next == '"') {
                    return made.toString();
                }
                if (next == '\\' && at < text.length()) {
                    char escaped = text.charAt(at++);
                    if (escaped == 'u' && at + 4 <= text.length()) {
                        made.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
                        at += 4;
                    } else {
                        int known = "bfnrt".indexOf(escaped);
                        made.append(known < 0 ? escaped : "\b\f\n\r\t".charAt(known));
                    }
                } else {
                    made.append(next);
                }
            }
            throw wrong();
        }

        static String write(Object value) {
            if (value instanceof Map<?, ?> map) {
                return new TreeMap<>(map).entrySet().stream()
                        .map(each -> write(each.getKey()) + ":" + write(each.getValue()))
                        .collect(Collectors.joining(",", "{", "}"));
            }
            if (value instanceof List<?> list) {
                return list.stream().map(Json::write).collect(Collectors.joining(",", "[", "]"));
            }
            if (!(value instanceof String text)) {
                return String.valueOf(value);
            }
            StringBuilder made = new StringBuilder("\"");
            for (char next : text.toCharArray()) {
                if (next == '"' || next == '\\') {
                    made.append('\\').append(next);
                } else if (next < ' ') {
                    made.append(String.format("\\u%04x", (int) next));
                } else {
                    made.append(next);
                }
            }
            return made.append('"').toString();
        }
    }
}
