// The usual way to wait for a job, on java.net.http: create with retries, poll in a loop, download.
//
// It works on every good day. Run it under jobsworth to see the others:
//
//     jobsworth check --one-shot -- java examples/java/Naive.java

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Naive {
    static final HttpClient CLIENT = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    static final String URL = System.getenv("PROVIDER_URL");
    static final String TRACE = "00-" + UUID.randomUUID().toString().replace("-", "") + "-00f067aa0ba902b7-01";

    static HttpRequest.Builder request(String url) {
        return HttpRequest.newBuilder(URI.create(url))
                .timeout(Duration.ofMillis((long) (Double.parseDouble(System.getenv("REQUEST_TIMEOUT_S")) * 1000)))
                .header("Authorization", System.getenv("JOBSWORTH_AUTHORIZATION"))
                .header("traceparent", TRACE);
    }

    static String postWithRetries(String body) throws InterruptedException {
        for (int tries = 0; tries < 5; tries++) {
            try {
                HttpRequest post = request(URL + "/v1/jobs")
                        .header("Content-Type", "application/json")
                        .header("Idempotency-Key", UUID.randomUUID().toString())
                        .POST(BodyPublishers.ofString(body))
                        .build();
                return CLIENT.send(post, BodyHandlers.ofString()).body();
            } catch (IOException error) {
                Thread.sleep(1000);
            }
        }
        throw new IllegalStateException("the provider does not answer");
    }

    static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\":\\s*\"([^\"]*)\"").matcher(json);
        return found.find() ? found.group(1) : null;
    }

    public static void main(String[] args) throws Exception {
        String job = postWithRetries(Files.readString(Path.of(System.getenv("REQUEST_FILE"))));
        String id = field(job, "id");
        while (!field(job, "status").matches("succeeded|failed|cancelled")) {
            Thread.sleep(1000);
            job = CLIENT.send(request(URL + "/v1/jobs/" + id).build(), BodyHandlers.ofString()).body();
        }
        if (!field(job, "status").equals("succeeded")) {
            throw new IllegalStateException("the job " + field(job, "status"));
        }
        HttpResponse<byte[]> result = CLIENT.send(request(field(job, "href")).build(), BodyHandlers.ofByteArray());
        Files.write(Path.of(System.getenv("STATE_DIR"), System.getenv("OPERATION_ID") + ".result"), result.body());
        System.out.println("{\"state\": \"succeeded\", \"remote_job\": \"" + id + "\"}");
    }
}
